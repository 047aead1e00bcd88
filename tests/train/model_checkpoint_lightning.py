"""model_checkpoint_lightning.py JOBS ANSWERS: what Lightning's ModelCheckpoint
saves in each fit of a list, and what it finds in the state that was saved."""
import logging
import os
import sys
import tempfile
import warnings

import torch

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
import with_torchvision  # noqa: E402, F401

warnings.filterwarnings("ignore")
import pytorch_lightning as pl  # noqa: E402
from pytorch_lightning.callbacks import EarlyStopping, ModelCheckpoint  # noqa: E402

logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)


class Net(pl.LightningModule):
    def __init__(self, job):
        super().__init__()
        self.job, self.layer = job, torch.nn.Linear(4, 1)

    def training_step(self, batch, _):
        return self.layer(batch).mean()

    def validation_step(self, batch, _):
        pass

    def log_value(self):
        values = self.job["values"]
        if self.job["monitor"]:
            self.log("loss", values[self.current_epoch % len(values)])

    def on_validation_epoch_end(self):
        if not self.trainer.sanity_checking:
            self.log_value()

    def on_train_epoch_end(self):
        if not self.job["validates"]:
            self.log_value()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def callback(job, folder):
    options = {
        name: job[name]
        for name in ("every_n_epochs", "every_n_train_steps", "save_top_k", "filename")
        if name in job
    }
    if job["on_epoch_end"] >= 0:
        options["save_on_train_epoch_end"] = job["on_epoch_end"] == 1
    return ModelCheckpoint(
        dirpath=folder,
        monitor=job["monitor"] or None,
        mode=job["mode"],
        save_last=(None, True, "link")[job["save_last"]],
        enable_version_counter=job["counts"],
        **options,
    )


def loader(n):
    return torch.utils.data.DataLoader(torch.zeros(n, 4))


def number(value):
    return float("nan") if value is None else float(value)


def fit(job):
    with tempfile.TemporaryDirectory() as folder:
        folder = os.path.realpath(folder)
        saved = callback(job, folder)
        trainer = pl.Trainer(
            accelerator="cpu", devices=1, max_epochs=job["epochs"], logger=False,
            enable_progress_bar=False, enable_model_summary=False, callbacks=[saved],
            num_sanity_val_steps=0, val_check_interval=job["val_check_interval"] or 1.0,
            check_val_every_n_epoch=job["check_val_every_n_epoch"],
        )  # fmt: skip
        trainer.fit(Net(job), loader(job["batches"]), loader(1) if job["validates"] else None)
        return {
            "files": " ".join(sorted(os.listdir(folder))),
            "best": os.path.basename(saved.best_model_path),
            "score": number(saved.best_model_score),
            "kth": os.path.basename(saved.kth_best_model_path),
            "kth_value": number(saved.kth_value),
            "last": os.path.basename(saved.last_model_path),
            "key": saved.state_key,
        }


def take(job):
    """Lightning's callbacks take the states of a file of calx's, and give their own."""
    states = torch.load(job["path"], weights_only=True)["callbacks"]
    saved = ModelCheckpoint(dirpath=job["folder"], monitor="loss", save_top_k=2, save_last=True)
    stopping = EarlyStopping(monitor="loss", patience=7)
    saved.load_state_dict(states[saved.state_key])
    stopping.load_state_dict(states[stopping.state_key])
    return {"callbacks": {c.state_key: c.state_dict() for c in (saved, stopping)}}


jobs = torch.load(sys.argv[1], weights_only=True)
torch.save([take(job) if "path" in job else fit(job) for job in jobs], sys.argv[2])
