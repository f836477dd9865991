# The demo in a container: a policy is learned from demonstrations, evaluated and filmed, into build/demo.
#
#   docker build --tag bilevel .
#   docker run --rm --volume "$PWD/build:/bilevel/build" bilevel
#   docker run --rm --volume "$PWD:/work" --workdir /work bilevel bilevel run gacha --objects 5 --video
FROM python:3.12-slim

RUN apt-get update -q \
    && apt-get install -qy --no-install-recommends make libegl1 libgl1-mesa-dri libgles2 libglx-mesa0 \
    && rm -rf /var/lib/apt/lists/*

WORKDIR /bilevel
COPY . .
RUN make .venv/installed EXTRAS=tabletop,learning,video PIP_NO_CACHE_DIR=1

ENV PATH="/bilevel/.venv/bin:$PATH"
CMD ["make", "demo"]
