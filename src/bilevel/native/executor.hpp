// The executor: relations, views of them, and rules over views; see join_plan.py for the idea, executor.py for the same
// in Python, and lowering.py for what plans are made of.
#pragma once

#include <stdexcept>

#include "relation.hpp"

namespace bilevel {

// A plan as numbers, read from left to right: a list begins with its length, a record does not.
struct Plan {
  std::vector<int> numbers;
  size_t at = 0;

  int next() { return numbers[at++]; }
  std::vector<int> list() {
    std::vector<int> found;
    each([&] { found.push_back(next()); });
    return found;
  }
  template <class Function>
  void each(Function&& function) {
    for (int left = next(); left > 0; --left) function();
  }
};

using Objects = std::vector<Object>;
// A term of an action, an effect or a goal: a place among given values, or if negative a constant, as -1 - number.
using Terms = std::vector<int>;

// Where a column of a row goes to, or with what it must agree: a slot holds the value of a variable or a constant.
struct Place {
  int column, slot;
};
using Places = std::vector<Place>;

inline bool bind_row(Row row, const Places& binds, const Places& same, Objects& values) {
  for (Place place : binds) values[place.slot] = row[place.column];
  for (Place place : same)
    if (values[place.slot] != row[place.column]) return false;
  return true;
}

// One step of a join: check a literal whose terms all have values, or list its rows, given some of them.
struct Step {
  enum Kind { PRESENT, ABSENT, UNEQUAL, LIST };
  Kind kind;
  Relation* relation = nullptr;
  int index = -1;          // to list by; if there is none, all rows are listed
  std::vector<int> slots;  // of the terms that have values
  Places binds, same;      // the others, and variables that occur twice among them
  Objects key{};

  Row key_from(const Objects& values) {
    key.resize(slots.size());
    for (size_t i = 0; i < slots.size(); ++i) key[i] = values[slots[i]];
    return key.data();
  }

  bool holds(const Objects& values) {
    if (kind == UNEQUAL) return values[slots[0]] != values[slots[1]];
    return relation->has(key_from(values)) == (kind == PRESENT);
  }
};
using Steps = std::vector<Step>;

inline bool hold(Steps& steps, const Objects& values) {
  for (Step& step : steps)
    if (!step.holds(values)) return false;
  return true;
}

struct Join {
  Objects values;  // of the slots; constants have theirs from the beginning
  Steps steps;
  int rule;  // for which it was planned
};

struct View;

// How a view changes when a row of one of its literals' relations comes or goes.
struct Change {
  View* view;
  Join join;
  Places binds, same;
};

struct Source;

// A relation with all that depends on it.
struct Source {
  int number;
  Relation relation;
  Relation wanted{relation.arity()};  // of goals: all of them, of which those in `relation` are open
  std::vector<Change*> when_present{}, when_absent{};
  bool is_watched = false;
};

// For each key the values that satisfy the view's literals.
struct View {
  Source source;  // the keys
  std::vector<SortedSet> values{};
  std::vector<int> key_slots{};
  int value_slot = 0;
  Objects key{};
};

struct Predicate {
  Source *state, *goal;  // either may be missing: nobody asks about it
};

struct Effect {
  Predicate predicate;
  Terms terms;
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
  Steps filters;
  Objects row{};
};

struct Reading {
  Steps filters;
  std::vector<Read> reads;
  std::vector<int> outputs;  // slots
};

// How to find the instances of a rule that serve a goal fact with one of its goal conditions.
struct Serving {
  Places binds, same;
  Steps guards;
  Join join;
  Reading rest;
};

struct Rule {
  std::vector<Source*> needs;  // if one of them is empty the rule does not apply
  Join ground;                 // conditions without variables
  std::vector<Source*> served;  // the relation of each goal condition
  Terms goal, arguments;       // of the first goal condition, which commitment is about, and of the action
  int operation;               // what the action does, if that is certain
  bool is_planned = false;
  Join guards{};  // views that have something; the values are those of the reading
  Reading reading{};
  std::vector<Serving> servings{};  // for each goal condition
};

class Executor {
 public:
  enum Status { DONE, NO_RULE, FOUND, SOLVED, PLAN, CHANGED };

  Order order;
  bool commits = false;
  int64_t most_work = 0;
  std::vector<std::pair<int, Objects>> came, went;  // rows of watched relations

  // What was found last: a rule (or the one to blame for too much work), its outputs and the action's arguments.
  int chosen = -1;
  Objects found, arguments;
  std::vector<Objects> instances;

  // What has been done, and the goal that is being served.
  std::vector<int> done;
  Objects done_arguments, committed_terms;
  Source* committed = nullptr;

  // Building

  int add_relation(int arity, bool is_goal) {
    sources_.emplace_back(new Source{int(sources_.size()), Relation(arity)});
    views_.emplace_back(nullptr);
    if (is_goal) goals_.push_back(sources_.back().get());
    return sources_.back()->number;
  }

  void load(int relation, const Object* terms, size_t count) {
    Source& source = *sources_[relation];
    bool is_goal = std::find(goals_.begin(), goals_.end(), &source) != goals_.end();
    for (size_t i = 0; i < count; ++i, terms += source.relation.arity()) {
      if (source.relation.has(terms)) continue;
      source.relation.add(terms);
      if (is_goal) source.wanted.add(terms);
    }
  }

  void mark_achieved(int goal, const Object* facts, size_t count) {
    Relation& found = sources_[goal]->relation;
    for (size_t i = 0; i < count; ++i, facts += found.arity())
      if (found.has(facts)) found.remove(found.find(facts));
  }

  void watch(int relation) { sources_[relation]->is_watched = true; }

  int add_view(Plan plan) {
    Join building{plan.list(), steps(plan), chosen};
    views_.emplace_back(new View{Source{int(sources_.size()), Relation(plan.numbers[plan.at])}});
    View& view = *views_.back();
    view.key_slots = plan.list();
    view.value_slot = plan.next();
    view.key.resize(view.key_slots.size());
    sources_.emplace_back(std::shared_ptr<Source>(), &view.source);
    work_ = 0;
    each(building, true, [&] { put(view, building.values, true); });
    plan.each([&] {
      Source& source = *sources_[plan.next()];
      bool positive = plan.next();
      changes_.emplace_back(new Change{&view, Join{building.values, steps(plan), chosen}, places(plan), places(plan)});
      (positive ? source.when_present : source.when_absent).push_back(changes_.back().get());
    });
    return view.source.number;
  }

  int add_operation(Plan plan) {
    operations_.push_back({effects(plan), effects(plan)});
    return int(operations_.size()) - 1;
  }

  void add_rule(Plan plan) {
    auto needs = sources(plan);
    Join ground{plan.list(), steps(plan), int(rules_.size())};
    auto served = sources(plan);
    Terms goal = plan.list(), arguments = plan.list();
    goals_end_it_ &= !served.empty();
    rules_.push_back({needs, ground, served, goal, arguments, plan.next()});
  }

  void plan_rule(int number, Plan plan) {
    Rule& rule = rules_[number];
    rule.guards = {plan.list(), steps(plan), number};
    rule.reading = reading(plan);
    rule.is_planned = true;
  }

  void plan_serving(int number, Plan plan) {
    plan.each([&] {
      Places binds = places(plan), same = places(plan);
      Steps guards = steps(plan);
      Join join{plan.list(), steps(plan), number};
      rules_[number].servings.push_back({binds, same, guards, join, reading(plan)});
    });
  }

  // Asking

  int64_t open_goals() const {
    int64_t count = 0;
    for (const Source* goal : goals_) count += int64_t(goal->relation.size());
    return count;
  }

  bool has(int relation, Row row) const { return sources_[relation]->relation.has(row); }

  // Find the first instance of the first rule that has one; stay with the last goal while some rule serves it.
  Status choose() {
    work_ = 0;
    for (chosen = 0; chosen < int(rules_.size()); ++chosen) {
      Rule& rule = rules_[chosen];
      if (!can_apply(rule)) continue;
      if (!rule.is_planned) return PLAN;
      if (hold(rule.guards.steps, rule.guards.values) && hold(rule.reading.filters, rule.guards.values) &&
          read(rule.reading, rule.guards.values, 0, found))
        return commits ? stay() : FOUND;
    }
    return NO_RULE;
  }

  // Find the first instance, of the first rule that has one or of one rule, that serves a goal fact.
  Status serve(int goal, const Objects& terms, int only) {
    work_ = 0;
    return serve(sources_[goal].get(), terms, only < 0 ? 0 : only, only < 0 ? int(rules_.size()) : only + 1);
  }

  // Find all instances of a rule.
  Status every(int number) {
    work_ = 0;
    chosen = number;
    Rule& rule = rules_[number];
    instances.clear();
    if (!can_apply(rule)) return NO_RULE;
    if (!rule.is_planned) return PLAN;
    if (hold(rule.guards.steps, rule.guards.values) && hold(rule.reading.filters, rule.guards.values))
      read_all(rule.reading, rule.guards.values, 0);
    std::sort(instances.begin(), instances.end(), [&](const Objects& a, const Objects& b) { return less(a, b); });
    instances.erase(std::unique(instances.begin(), instances.end()), instances.end());
    return FOUND;
  }

  // Acting

  void set(int state, int goal, Row row, bool present) { set(predicate(state, goal), row, present); }

  // Make a fact a goal, which may hold already, or no goal any more.
  void want(int goal, Row row, bool wanted, bool holds) {
    Source& source = *sources_[goal];
    bool was_open = source.relation.has(row), is_open = wanted && !holds;
    if (wanted && !source.wanted.has(row)) source.wanted.add(row);
    if (!wanted && source.wanted.has(row)) source.wanted.remove(source.wanted.find(row));
    if (is_open && !was_open) add_row(source, row);
    if (was_open && !is_open) remove_row(source, source.relation.find(row), row);
  }

  void apply(int number, const Objects& arguments) {
    const Operation& operation = operations_[number];
    for (const Effect& effect : operation.adds) {
      values_of(effect.terms, arguments, row_);
      set(effect.predicate, row_.data(), true);
    }
    for (const Effect& effect : operation.deletes) {
      values_of(effect.terms, arguments, row_);
      if (!is_added(operation, effect, arguments)) set(effect.predicate, row_.data(), false);
    }
  }

  // Choose and act until there are `bound` actions, or something is to be done or decided elsewhere.
  Status run(size_t bound) {
    while (done.size() < bound) {
      if (!goals_end_it_ && !open_goals()) return SOLVED;
      Status status = choose();
      if (status == NO_RULE) return open_goals() ? NO_RULE : SOLVED;
      if (status != FOUND) return status;
      const Rule& rule = rules_[chosen];
      values_of(rule.arguments, found, arguments);
      if (rule.operation < 0) return FOUND;
      apply(rule.operation, arguments);
      note_done();
      if (!came.empty() || !went.empty()) return CHANGED;
    }
    return DONE;
  }

  void note_done() {
    done.push_back(chosen);
    done_arguments.insert(done_arguments.end(), arguments.begin(), arguments.end());
  }

 private:
  // Plans

  Places places(Plan& plan) {
    Places found;
    plan.each([&] {
      int column = plan.next();
      found.push_back({column, plan.next()});
    });
    return found;
  }

  Steps steps(Plan& plan) {
    Steps found;
    plan.each([&] {
      Step step{Step::Kind(plan.next())};
      int relation = plan.next();
      std::vector<int> columns = plan.list();
      step.slots = plan.list();
      step.binds = places(plan);
      step.same = places(plan);
      if (relation >= 0) step.relation = &sources_[relation]->relation;
      if (step.kind == Step::LIST && !columns.empty()) step.index = step.relation->index(columns);
      found.push_back(std::move(step));
    });
    return found;
  }

  Reading reading(Plan& plan) {
    Reading found{steps(plan)};
    plan.each([&] {
      Read read{views_[plan.next()].get(), plan.list()};
      read.slot = plan.next();
      read.compares = plan.next();
      read.filters = steps(plan);
      found.reads.push_back(std::move(read));
    });
    found.outputs = plan.list();
    return found;
  }

  std::vector<Source*> sources(Plan& plan) {
    std::vector<Source*> found;
    for (int number : plan.list()) found.push_back(sources_[number].get());
    return found;
  }

  std::vector<Effect> effects(Plan& plan) {
    std::vector<Effect> found;
    plan.each([&] {
      int state = plan.next(), goal = plan.next();
      found.push_back({predicate(state, goal), plan.list()});
    });
    return found;
  }

  Predicate predicate(int state, int goal) {
    return {state >= 0 ? sources_[state].get() : nullptr, goal >= 0 ? sources_[goal].get() : nullptr};
  }

  // Joins

  void count_work(int rule) {
    if (++work_ <= most_work) return;
    chosen = rule;
    throw std::overflow_error("too many rows");
  }

  // Call the function for all values that the steps allow from some step on; where they are known to, check nothing.
  template <class Function>
  void each(Join& join, bool check, Function&& function, size_t from = 0) {
    Steps& steps = join.steps;
    for (; from < steps.size() && steps[from].kind != Step::LIST; ++from)
      if (check && !steps[from].holds(join.values)) return;
    if (from == steps.size()) return function();
    Step& step = steps[from];
    auto visit = [&](Number number) {
      count_work(join.rule);
      if (bind_row(step.relation->row(number), step.binds, step.same, join.values)) each(join, check, function, from + 1);
    };
    if (step.index < 0) return step.relation->each(visit);
    const Index& index = step.relation->indexes()[step.index];
    for (Number number = index.first(step.key_from(join.values)); number != NONE; number = index.next(number))
      visit(number);
  }

  // Find the first instance that the values of the slots so far allow.
  bool read(Reading& reading, Objects& values, size_t place, Objects& result) {
    if (place == reading.reads.size()) {
      outputs_of(reading, values, result);
      return true;
    }
    bool any = false;
    Objects candidate;
    each_value(reading.reads[place], values, [&] {
      if (!reading.reads[place].compares) return any = read(reading, values, place + 1, result);
      if (read(reading, values, place + 1, candidate) && (!any || less(candidate, result))) {
        result.swap(candidate);
        any = true;
      }
      return false;
    });
    return any;
  }

  void read_all(Reading& reading, Objects& values, size_t place) {
    if (place == reading.reads.size()) {
      instances.emplace_back();
      return outputs_of(reading, values, instances.back());
    }
    each_value(reading.reads[place], values, [&] {
      read_all(reading, values, place + 1);
      return false;
    });
  }

  // Give a variable each value that its view has and that can be, until the function returns true.
  template <class Function>
  void each_value(Read& read, Objects& values, Function&& function) {
    read.row.resize(read.key.size());
    for (size_t i = 0; i < read.key.size(); ++i) read.row[i] = values[read.key[i]];
    Number number = read.view->source.relation.find(read.row.data());
    if (number == NONE) return;
    read.view->values[number].any([&](Object value) {
      count_work(chosen);
      values[read.slot] = value;
      return hold(read.filters, values) && function();
    });
  }

  static void outputs_of(const Reading& reading, const Objects& values, Objects& result) {
    result.clear();
    for (int slot : reading.outputs) result.push_back(values[slot]);
  }

  bool less(const Objects& one, const Objects& other) const {
    for (size_t i = 0; i < one.size(); ++i)
      if (one[i] != other[i]) return order.less(one[i], other[i]);
    return false;
  }

  // Rules

  static bool can_apply(Rule& rule) {
    for (const Source* source : rule.needs)
      if (!source->relation.size()) return false;
    return hold(rule.ground.steps, rule.ground.values);
  }

  // Replace what was chosen by what serves the goal that the last choice served, if it serves another one.
  Status stay() {
    Rule& rule = rules_[chosen];
    Source* goal = rule.served.empty() ? nullptr : rule.served[0];
    Objects terms;
    values_of(rule.goal, found, terms);
    if (goal == committed && terms == committed_terms) return FOUND;
    if (committed) {
      int first = chosen;
      first_found_.swap(found);
      Status status = serve(committed, committed_terms, 0, int(rules_.size()));
      if (status != NO_RULE) return status;
      chosen = first;
      first_found_.swap(found);
    }
    committed = goal;
    committed_terms = terms;
    return FOUND;
  }

  Status serve(Source* goal, const Objects& terms, int from, int end) {
    for (chosen = from; chosen < end; ++chosen) {
      Rule& rule = rules_[chosen];
      if (std::find(rule.served.begin(), rule.served.end(), goal) == rule.served.end() || !can_apply(rule)) continue;
      if (!rule.is_planned || rule.servings.empty()) return PLAN;
      bool any = false;
      for (size_t place = 0; place < rule.served.size(); ++place)
        if (rule.served[place] == goal) any |= serve(rule.servings[place], terms, any);
      if (any) return FOUND;
    }
    return NO_RULE;
  }

  bool serve(Serving& serving, const Objects& terms, bool any) {
    Join& join = serving.join;
    if (!bind_row(terms.data(), serving.binds, serving.same, join.values) || !hold(serving.guards, join.values)) return false;
    bool better = false;
    Objects candidate;
    each(join, true, [&] {
      if (!hold(serving.rest.filters, join.values) || !read(serving.rest, join.values, 0, candidate)) return;
      if ((any || better) && !less(candidate, found)) return;
      found.swap(candidate);
      better = true;
    });
    return better;
  }

  // Facts

  void set(Predicate predicate, Row row, bool present) {
    if (predicate.state) {
      Number number = predicate.state->relation.find(row);
      if ((number != NONE) == present) return;
      if (present) add_row(*predicate.state, row);
      else remove_row(*predicate.state, number, row);
    }
    if (predicate.goal) {
      Number number = predicate.goal->relation.find(row);
      if ((number != NONE) != present || (!present && !predicate.goal->wanted.has(row))) return;
      if (present) remove_row(*predicate.goal, number, row);
      else add_row(*predicate.goal, row);
    }
  }

  static void values_of(const Terms& terms, const Objects& given, Objects& values) {
    values.clear();
    for (int term : terms) values.push_back(term < 0 ? -1 - term : given[term]);
  }

  // Whether the operation adds the fact of an effect that deletes it, which is in `row_`: then it stays.
  bool is_added(const Operation& operation, const Effect& deleted, const Objects& arguments) {
    for (const Effect& effect : operation.adds) {
      if (effect.predicate.state != deleted.predicate.state || effect.predicate.goal != deleted.predicate.goal) continue;
      values_of(effect.terms, arguments, other_row_);
      if (other_row_ == row_) return true;
    }
    return false;
  }

  void add_row(Source& source, Row row) {
    pass_on(source.when_absent, row, false);
    source.relation.add(row);
    pass_on(source.when_present, row, true);
    if (source.is_watched) came.emplace_back(source.number, Objects(row, row + source.relation.arity()));
  }

  void remove_row(Source& source, Number number, Row row) {
    pass_on(source.when_present, row, false);
    source.relation.remove(number);
    pass_on(source.when_absent, row, true);
    if (source.is_watched) went.emplace_back(source.number, Objects(row, row + source.relation.arity()));
  }

  void pass_on(const std::vector<Change*>& changes, Row row, bool appearing) {
    for (Change* change : changes)
      if (bind_row(row, change->binds, change->same, change->join.values))
        each(change->join, appearing, [&] { put(*change->view, change->join.values, appearing); });
  }

  // Put an entry into a view or take it out; whoever asks about the key hears of the first and the last.
  void put(View& view, const Objects& values, bool appearing) {
    for (size_t i = 0; i < view.key.size(); ++i) view.key[i] = values[view.key_slots[i]];
    Row key = view.key.data();
    Relation& keys = view.source.relation;
    Number number = keys.find(key);
    Object value = values[view.value_slot];
    if (!appearing) {
      if (number == NONE || !view.values[number].erase(value, order) || !view.values[number].empty()) return;
      pass_on(view.source.when_present, key, false);
      keys.remove(number);
    } else if (number != NONE) {
      view.values[number].insert(value, order);
    } else {
      number = keys.add(key);
      if (view.values.size() <= number) view.values.resize(number + 1);
      view.values[number].insert(value, order);
      pass_on(view.source.when_present, key, true);
    }
  }

  std::vector<std::shared_ptr<Source>> sources_;  // of relations and of views' keys, by number
  std::vector<std::unique_ptr<View>> views_;      // by the number of their keys; none for other relations
  std::vector<std::unique_ptr<Change>> changes_;
  std::vector<Source*> goals_;
  std::vector<Operation> operations_;
  std::vector<Rule> rules_;
  bool goals_end_it_ = true;  // all rules have a goal condition
  int64_t work_ = 0;
  Objects row_, other_row_, first_found_;
};

}  // namespace bilevel
