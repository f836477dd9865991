#!/bin/bash
# `make demo`: from demonstrations to a policy that runs the robot, by the commands that a user gives.
# It begins afresh every time; of what is in its folder it removes only what it writes itself.
set -e
folder=${1:-build/demo}
echo "\$ cd $folder"
mkdir -p "$folder" && cd "$folder"
rm -rf demonstrations policy results.jsonl results.timings.jsonl episode.mp4 blocks*.pddl blocks.plan
pictures="--video episode.mp4"
bilevel run blocks --policy expert --objects 1 --video > /dev/null 2>&1 || pictures=""  # without OpenGL

say() { printf '\n# %s\n\n' "$*"; }
try() {
  echo "\$ bilevel $*"
  bilevel "$@" || { code=$?; [ $code = 1 ] || exit $code; }  # 1 is an answer, if not the one that was hoped for
}

say An expert demonstrates Blocks with ${OBJECTS:=3} objects, ${EPISODES:=200} times
try collect blocks --objects $OBJECTS --episodes $EPISODES --output demonstrations
say Both levels are learned: rules that decide, and a network that moves the hand
try learn demonstrations --output policy $LEARNING
say The rules in plain English
try rules show policy/rules.txt --format english
say The policy in episodes that it has never seen, with ${SIZES:=1-10} objects
try evaluate --policy policy --objects $SIZES --episodes ${EVALUATED:-10} --output results.jsonl
say One of these episodes, with ${SHOWN:=5} objects, and why each thing is done
try run --replay results.jsonl --objects $SHOWN --episode 0 --explain $pictures
say The same rules on a problem with ${BLOCKS:=10000} blocks, without a robot
try problem blocks --objects $BLOCKS --output blocks.pddl
try solve blocks-domain.pddl blocks.pddl --rules policy/rules.txt --plan blocks.plan
try validate blocks-domain.pddl blocks.pddl blocks.plan

cat << END

Written to $folder: demonstrations, the learned policy, results.jsonl of its evaluation, the problem and its plan
${pictures:+and an episode with the reason for every action, episode.mp4}
Try next, after \`source .venv/bin/activate\`:
  bilevel run blocks --policy $folder/policy --objects 20 --noise 0.7 --explain
  bilevel evaluate factory --policy $folder/policy --output build/factory.jsonl
  bilevel collect gacha --output build/gacha && bilevel learn build/gacha --output build/gacha-policy
END
