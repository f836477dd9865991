// Rules over views: how instances are read off, and what actions do.
#pragma once

#include "views.hpp"

namespace bilevel {

// A term of an action, an effect or a goal: a place among given values, or if negative a constant, as -1 - number.
using Term = int;

struct Predicate {
  Source *state, *goal;  // either may be missing: nobody asks about it
};

struct Effect {
  Predicate predicate;
  std::vector<Term> terms;
};

struct Operation {
  std::vector<Effect> adds, deletes;
};

// Read a variable's value off its view, then check what can be checked.
struct Read {
  View* view;
  std::vector<int> key;
  int slot;
  bool compares;  // all values are tried, as a variable that is read later decides ties earlier
  std::vector<Step> filters;
  std::vector<Object> row{};
};

struct Reading {
  std::vector<Step> filters;
  std::vector<Read> reads;
  std::vector<int> outputs;  // slots
};

// How to find the instances of a rule that serve a goal fact with one of its goal conditions.
struct Serving {
  std::vector<Place> binds, same;
  std::vector<Step> guards;
  Join join;
  Reading rest;
};

struct Rule {
  std::vector<Source*> needs;  // if one of them is empty the rule does not apply
  Join ground;                 // conditions without variables
  Join guards;                 // views that have something; the values are those of the reading
  Reading reading;
  std::vector<View*> views;  // each after those it is made of
  std::vector<Source*> served;  // the relation of each goal condition
  std::vector<Serving> servings;  // for each goal condition
  std::vector<Term> goal;  // the terms of the goal condition that commitment is about, the first of `served`
  std::vector<Term> arguments;
  int operation = -1;  // what the action does, if that is certain
  bool is_planned = false, is_awake = false, was_asked = false;
  int64_t work = 0;  // of the views when it was last asked
};

}  // namespace bilevel
