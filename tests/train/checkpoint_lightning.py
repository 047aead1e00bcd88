"""checkpoint_lightning.py JOBS ANSWERS: Lightning trains, resumes and saves as each job
says. The model, its data and its numbers are those of checkpoint_run.h.
"""

import argparse
import logging
import os
import pathlib
import sys
import warnings

import numpy as np
import torch

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
import with_torchvision  # noqa: E402, F401
import pytorch_lightning as pl  # noqa: E402

BATCHES, SIZE, FEATURES = 5, 4, 6
# What users hand over beside numbers and texts; weights_only refuses it.
ARGS = argparse.Namespace(rate=np.float64(0.25), data=pathlib.Path("data/mnist"), act=torch.nn.ReLU())
logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
warnings.filterwarnings("ignore")


class Module(pl.LightningModule):
    def __init__(self, kind="sgd", args=None):
        super().__init__()
        self.save_hyperparameters()
        self.automatic_optimization = kind != "manual"
        self.net = torch.nn.ModuleDict(
            {"hidden": torch.nn.Linear(FEATURES, 8), "head": torch.nn.Linear(8, 1)}
        ).double()
        self.seen = []

    # The batch of the loader, which begins anew when it is resumed, is not used.
    def loss(self, epoch, idx):
        n = epoch * 31 + idx * 7 + torch.arange(SIZE)[:, None] * 5 + torch.arange(FEATURES) ** 2
        x = (n % 13).double() / 13
        y = (x[:, 0] + 2 * x[:, 1] - x[:, 2])[:, None]
        out = self.net["head"](torch.tanh(self.net["hidden"](x)))
        return ((out - y) ** 2).mean()

    def training_step(self, batch, idx):
        self.seen += [self.current_epoch, idx]
        loss = self.loss(self.current_epoch, idx)
        if not self.automatic_optimization:
            for opt in self.optimizers():
                opt.zero_grad()
            self.manual_backward(loss)
            for opt in self.optimizers():
                opt.step()
        return loss

    def validation_step(self, batch, idx):
        self.log("val_loss", self.loss(0, idx))

    def configure_optimizers(self):
        sgd, adam = torch.optim.SGD, torch.optim.Adam
        if self.hparams.kind == "manual":
            hidden, head = (self.net[name].parameters() for name in ("hidden", "head"))
            return [sgd(hidden, lr=0.05, momentum=0.9), adam(head, lr=0.05)], []
        if self.hparams.kind == "adam":
            opt = adam(self.parameters(), lr=0.05)
        else:
            opt = sgd(self.parameters(), lr=0.05, momentum=0.9)
        return [opt], [torch.optim.lr_scheduler.StepLR(opt, 1, gamma=0.5)]


class Save(pl.Callback):
    """Saves in the named hook of the epoch, at its batch."""

    def __init__(self, job):
        self.job = job

    def save(self, trainer, hook):
        progress = trainer.fit_loop.epoch_loop.batch_progress.current
        here = [hook, trainer.current_epoch, progress.ready]
        if not trainer.sanity_checking and here == [self.job[k] for k in ("hook", "epoch", "batch")]:
            trainer.save_checkpoint(self.job["save"])

    def on_train_batch_end(self, trainer, *_):
        self.save(trainer, "batch")

    def on_validation_end(self, trainer, *_):
        self.save(trainer, "validation")

    def on_train_epoch_end(self, trainer, *_):
        self.save(trainer, "epoch")
        self.save(trainer, "epoch, 1.5")

    def on_train_end(self, trainer, *_):
        self.save(trainer, "fit")

    def on_train_epoch_start(self, trainer, *_):
        self.save(trainer, "start")


def trainer_of(job):
    callbacks = [Save(job), pl.callbacks.Timer("00:01:00:00")]
    if job.get("validates"):
        callbacks.append(pl.callbacks.EarlyStopping("val_loss", patience=99))
    return pl.Trainer(
        accelerator="cpu",
        max_epochs=job.get("max_epochs", -1),
        max_steps=job.get("max_steps", -1),
        accumulate_grad_batches=job.get("accumulate", 1),
        val_check_interval=job.get("val_check_interval", 1.0),
        limit_val_batches=2 if job.get("validates") else 0,
        callbacks=callbacks if "save" in job else [],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=os.path.dirname(sys.argv[1]),
    )


def of_1_5(path):
    """As 1.5.10 saved it: no loops, the epoch one ahead; with classes in it."""
    old = torch.load(path, weights_only=False)
    del old["loops"]
    old["epoch"] += 1
    old["pytorch-lightning_version"] = "1.5.10"
    old["callbacks"] = {pl.callbacks.EarlyStopping: {"wait_count": 1}}
    old["hyper_parameters"]["trainer"] = pl.Trainer
    torch.save(old, path)


def run(job):
    loader = torch.utils.data.DataLoader(torch.zeros(BATCHES, 1))
    module = Module(job["kind"], ARGS if "save" in job else None)
    trainer = trainer_of(job)
    if job.get("evaluates"):
        loaded = Module.load_from_checkpoint(job["resume"])
        result = trainer.validate(module, loader, ckpt_path=job["resume"], verbose=False)
        same = torch.equal(loaded.net["head"].weight, module.net["head"].weight)
        return {"val_loss": result[0]["val_loss"], "same": same}
    trainer.fit(module, loader, loader, ckpt_path=job.get("resume"))
    if job.get("hook") == "epoch, 1.5":
        of_1_5(job["save"])
    return {
        "weights": module.state_dict(),
        "seen": module.seen,
        "epoch": trainer.current_epoch,
        "global_step": trainer.global_step,
    }


torch.save([run(job) for job in torch.load(sys.argv[1])], sys.argv[2])
