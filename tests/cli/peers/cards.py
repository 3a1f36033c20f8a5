"""Cards read by the packages they are for: test_cards_peers.sh.

cards.py FOLDER CARD...   every CARD below FOLDER: README.md by huggingface_hub, and by `datasets` where that is installed; croissant.json by
                          mlcroissant, whose records are then read. Prints one line for each card"""
import json
import os
import sys


def croissant(path):
    import mlcroissant

    data = mlcroissant.Dataset(jsonld=path)
    issues = data.metadata.ctx.issues
    assert not issues.errors, issues.report()
    counts = {}
    for records in data.metadata.record_sets:
        rows = list(data.records(record_set=records.uuid))
        counts[records.uuid] = len(rows)
        for field in ("class", "label"):
            values = [row[f"{records.uuid}/{field}"] for row in rows if f"{records.uuid}/{field}" in row]
            if values and records.uuid != "classes":
                counts[f"{records.uuid}/{field}"] = len(set(values))
        for row in rows:
            assert all(value is not None for value in row.values()), row
    return {"warnings": len(issues.warnings), "records": counts}


def huggingface(path):
    from huggingface_hub import DatasetCard

    card = DatasetCard.load(path)
    info = card.data.to_dict()
    out = {key: info.get(key) for key in ("license", "task_categories")}
    out["splits"] = {split["name"]: split["num_examples"] for split in info["dataset_info"]["splits"]}
    out["text"] = len(card.text.strip()) > 0
    if "configs" not in info:
        return out
    try:
        import datasets
    except ImportError:
        return out
    loaded = datasets.load_dataset(os.path.dirname(path), cache_dir=os.path.join(os.environ["XDG_CACHE_HOME"], "datasets"))
    out["loaded"] = {name: len(split) for name, split in loaded.items()}
    assert out["loaded"] == out["splits"], out
    features = next(iter(loaded.values())).features
    for name, one in features.items():
        if hasattr(one, "names"):
            out["classes"] = one.names
            out["labels"] = {split: len(set(data[name])) for split, data in loaded.items()}
            assert all(None not in data[name] for data in loaded.values()), name
    return out


for name in sys.argv[2:]:
    at = os.path.join(sys.argv[1], name)
    print(name, json.dumps(huggingface(at) if name.endswith(".md") else croissant(at), sort_keys=True))
