"""lightning_session.py KIND COLUMNS: what Lightning shows on a terminal of so many columns
in the run of progress_bar.c: tqdm, tqdm_leave, rich or rich_leave. Run with
pytorch-lightning 2.6.6, tqdm 4.70.1 and rich 15.0.0 (PyPI) to record sessions/KIND.gz anew.
At the end of each phase a title is set.
"""

import gzip
import os
import sys
import tempfile
import time
import warnings
from pathlib import Path

import terminal


def mark(name):
    time.sleep(0.15)  # Rich draws by a thread
    sys.stdout.flush()
    os.write(1, f"\x1b]0;{name}\a".encode())


def run(kind):
    warnings.simplefilter("ignore")
    import pytorch_lightning as pl
    import torch
    from pytorch_lightning.callbacks import RichProgressBar, TQDMProgressBar

    class Module(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(32, 2)

        # A drawing that is asked for while the thread draws is lost.
        def forward(self, batch):
            time.sleep(0.05)
            return self.layer(batch)

        def training_step(self, batch, i):
            self.log("train_loss", 1 / (1 + self.current_epoch), prog_bar=True)
            self.log("acc", 0.25 * (1 + self.current_epoch), prog_bar=True, on_step=True,
                     on_epoch=True)
            return self(batch).square().mean()

        def validation_step(self, batch, i, dataloader_idx=0):
            self(batch)
            self.log("val_loss", 0.5 + dataloader_idx, prog_bar=True)

        def test_step(self, batch, i, dataloader_idx=0):
            self(batch)

        def predict_step(self, batch, i, dataloader_idx=0):
            return self(batch)

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.1)

        def on_train_epoch_end(self):
            mark(f"epoch {self.current_epoch} end")

        def on_validation_end(self):
            if not self.trainer.sanity_checking:
                mark("validation end")

        def on_validation_batch_end(self, outputs, batch, i, dataloader_idx=0):
            t = self.trainer
            sizes = t.num_sanity_val_batches if t.sanity_checking else t.num_val_batches
            if i + 1 == sizes[dataloader_idx]:
                mark(f"validation {dataloader_idx} last")

        def on_test_batch_end(self, outputs, batch, i, dataloader_idx=0):
            if i + 1 == self.trainer.num_test_batches[dataloader_idx]:
                mark(f"test {dataloader_idx} last")

        def on_predict_batch_end(self, outputs, batch, i, dataloader_idx=0):
            if i + 1 == self.trainer.num_predict_batches[dataloader_idx]:
                mark(f"predict {dataloader_idx} last")

    class Sanity(pl.Callback):
        def on_sanity_check_end(self, trainer, module):
            mark("sanity end")

    def loader(n):
        return torch.utils.data.DataLoader(torch.ones(n, 32), batch_size=1)

    bar = (RichProgressBar if kind.startswith("rich") else TQDMProgressBar)(
        leave=kind.endswith("leave"))
    trainer = pl.Trainer(
        accelerator="cpu", devices=1, max_epochs=2, callbacks=[bar, Sanity()],
        logger=pl.loggers.CSVLogger(tempfile.mkdtemp()), enable_checkpointing=False,
        enable_model_summary=False, val_check_interval=0.5, log_every_n_steps=1)
    module, two = Module(), [loader(3), loader(2)]
    trainer.fit(module, loader(6), two)
    mark("fit done")
    trainer.validate(module, two, verbose=False)
    mark("validate done")
    trainer.test(module, two, verbose=False)
    mark("test done")
    trainer.predict(module, two)
    mark("predict done")


if sys.argv[2] == "run":
    run(sys.argv[1])
else:
    code, shown, error = terminal.run([sys.executable, __file__, sys.argv[1], "run"],
                                      int(sys.argv[2]))
    assert code == 0, error
    path = Path(__file__).parent / "sessions" / (sys.argv[1] + ".gz")
    path.write_bytes(gzip.compress(shown, mtime=0))
