#!/bin/sh
# Makes the virtual environment in which LeRobot runs, unless it is there, and downloads a model of the hub into it:
# lerobot_install.sh PYTHON FOLDER VERSION [MODEL NAME REVISION]. Pip's own variables choose builds of torch for CPUs or
# CUDA. LeRobot itself asks for an older torch than the one that is used here.
set -ex
unset HF_HUB_OFFLINE PYTHONPATH
if [ ! -f "$2/installed-$3" ]; then
  "$1" -m venv "$2"
  pip="$2/bin/python -m pip install --disable-pip-version-check --quiet"
  $pip torch==2.13.0
  $pip --no-deps torchvision==0.28.0 lerobot=="$3"
  $pip 'transformers>=4.57.1,<5' 'datasets>=4,<5' 'huggingface-hub[cli]>=0.34.2,<0.36' 'diffusers<0.36' 'accelerate>=1.10,<2' \
    'einops<0.9' 'opencv-python-headless<4.13' 'av>=15,<16' jsonlines 'packaging<26' draccus==0.10.0 'gymnasium>=1.1.1,<2' \
    'deepdiff<9' 'imageio[ffmpeg]' termcolor num2words safetensors 'pyserial<4'
  # PyPI's torchvision is built for CUDA. Beside a build of torch for CPUs its library cannot be loaded, and two of its
  # operations, which no policy uses, must be declared before it can be imported.
  "$2/bin/python" -c 'import torchvision' 2>/dev/null || "$2/bin/python" - <<'END'
import importlib.util, pathlib
folder = importlib.util.find_spec("torchvision").submodule_search_locations[0]
with open(pathlib.Path(folder, "extension.py"), "a") as file:
    for name in ("nms", "qnms"):
        schema = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
        print(f'torch.library.define("torchvision::{name}", "{schema}")', file=file)
END
  "$2/bin/python" -c 'import lerobot.policies.factory'
  touch "$2/installed-$3"
fi
if [ -n "$4" ]; then  # the policy's weights come last: where they are, its backbone is, too
  to="$2/models/$4"
  "$2/bin/hf" download "$5" config.json --revision "$6" --local-dir "$to"
  "$2/bin/hf" download "$("$2/bin/python" -c 'import json, sys; print(json.load(open(sys.argv[1]))["vlm_model_name"])' \
    "$to/config.json")" --exclude 'onnx/*'
  "$2/bin/hf" download "$5" --revision "$6" --local-dir "$to"
fi
