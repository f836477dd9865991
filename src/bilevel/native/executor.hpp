// The executor: relations, views of them, and rules over views; see join_plan.py for the idea and for what plans are made
// of, executor.py for the same in Python.
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
  // What the slots hold at first: constants are negative here, as -1 - number.
  std::vector<int> values() {
    std::vector<int> found = list();
    for (int& value : found) value = value < 0 ? -1 - value : 0;
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

// A relation with all that depends on it.
struct Source {
  int number;
  Relation relation;
  std::vector<Change*> when_present{}, when_absent{};
  Relation wanted{relation.arity()};  // of goals: all of them, of which those in `relation` are open
  Source* goals = nullptr;            // of the predicate whose facts these are
};

// For each key the values that satisfy the view's literals.
struct View {
  Source source;  // the keys
  std::vector<SortedSet> values{};
  std::vector<int> key_slots{};
  int value_slot = 0;
  Objects key{};
};

struct Effect {
  Source* source;
  Terms terms;
};

using Effects = std::vector<Effect>;

// Read a variable's value off its view, then check what can be checked.
struct Read {
  View* view;
  std::vector<int> key;
  int slot;
  bool compares;  // all values are tried, as a variable that is read later decides ties earlier
  Steps filters;
  Objects row{};
};

// How instances are found: check what has no variables, or has something in its view, then read the variables.
struct Search {
  Objects values;  // of the slots
  Steps guards{};
  std::vector<Read> reads{};
  std::vector<int> outputs{};  // slots
};

// The goal that an instance of a rule serves, if any: its relation among facts, and among goals that are served.
struct Goal {
  Source *facts = nullptr, *served = nullptr;
  Terms terms{};
};

struct Rule {
  int place;  // of the first rule like it; those that come again are for instances that serve a goal
  bool serves;
  std::vector<Source*> needs;  // if one of them is empty the rule does not apply
  Goal goal{};
  Terms arguments{};
  bool is_certain = false;  // what the action does: for an instance, these effects
  Effects adds{}, deletes{};
  bool is_planned = false;
  Search search{};
};

class Executor {
 public:
  enum Status { DONE, NO_RULE, FOUND, PLAN, CHANGED };

  Order order;
  bool commits = false;
  int64_t most_work = 0;

  int unplanned = -1;  // the rule whose plan is needed

  // What was found last: a rule (or the one to blame for too much work), its outputs and the action's arguments.
  int chosen = -1;
  Objects found, arguments;
  std::vector<Objects> instances;

  // What has been done.
  std::vector<int> done;
  Objects done_arguments;
  int64_t open_goals = 0;
  std::vector<std::pair<int, Objects>> came, went;  // what the last action has changed, if a run was to stop there

  // Building

  // Add a relation with its rows; one of goals comes after that of the facts that achieve them.
  int add_relation(int arity, const Object* terms, size_t count, int facts) {
    sources_.emplace_back(new Source{int(sources_.size()), Relation(arity)});
    views_.emplace_back(nullptr);
    Source& source = *sources_.back();
    const Source* achieved = facts >= 0 ? sources_[facts].get() : nullptr;
    if (achieved) sources_[facts]->goals = &source;
    for (size_t i = 0; i < count; ++i, terms += arity) {
      if (achieved && !source.wanted.has(terms)) source.wanted.add(terms);
      if (source.relation.has(terms) || (achieved && achieved->relation.has(terms))) continue;
      source.relation.add(terms);
      open_goals += achieved != nullptr;
    }
    return sources_.back()->number;
  }

  int add_view(Plan plan) {
    Join building{plan.values(), steps(plan), chosen};
    views_.emplace_back(new View{Source{int(sources_.size()), Relation(plan.numbers[plan.at])}});
    View& view = *views_.back();
    view.key_slots = plan.list();
    view.value_slot = plan.next();
    view.key.resize(view.key_slots.size());
    sources_.emplace_back(std::shared_ptr<Source>(), &view.source);
    work_ = 0;
    each(building, [&] { put(view, building.values, true); });
    plan.each([&] {
      Source& source = *sources_[plan.next()];
      bool positive = plan.next();
      changes_.emplace_back(new Change{&view, Join{building.values, steps(plan), chosen}, places(plan), places(plan)});
      (positive ? source.when_present : source.when_absent).push_back(changes_.back().get());
    });
    return view.source.number;
  }

  void add_rule(int place, Plan plan) {
    rules_.push_back({place, place < int(rules_.size()), sources(plan)});
    Rule& rule = rules_.back();
    plan.each([&] { rule.goal = {sources_[plan.next()].get(), sources_[plan.next()].get(), plan.list()}; });
    rule.arguments = plan.list();
    plan.each([&] {
      rule.is_certain = true;
      rule.adds = effects(plan);
      rule.deletes = effects(plan);
    });
  }

  void plan_rule(int number, Plan plan) {
    Search search{plan.values(), steps(plan)};
    plan.each([&] {
      Read read{views_[plan.next()].get(), plan.list()};
      read.slot = plan.next();
      read.compares = plan.next();
      read.filters = steps(plan);
      read.row.resize(read.key.size());
      search.reads.push_back(std::move(read));
    });
    search.outputs = plan.list();
    rules_[number].search = std::move(search);
    rules_[number].is_planned = true;
  }

  // Asking

  // The goal that is being served: its terms and the number of its relation, or nothing.
  Objects served() const {
    Objects found = served_.terms;
    if (served_.facts) found.push_back(served_.facts->number);
    return found;
  }

  bool has(int relation, Row row) const { return sources_[relation]->relation.has(row); }

  // Find the first instance of the first rule that has one; stay with the last goal while some rule serves it.
  Status choose() {
    work_ = 0;
    is_collecting_ = false;
    Status status = find_first(false);
    return status == FOUND && commits ? stay() : status;
  }

  // Find all instances of a rule.
  Status every(int number) {
    work_ = 0;
    chosen = unplanned = number;
    Rule& rule = rules_[number];
    instances.clear();
    if (!can_apply(rule)) return FOUND;
    if (!rule.is_planned) return PLAN;
    Objects last;
    is_collecting_ = true;
    find(rule.search, last);
    std::sort(instances.begin(), instances.end(), [&](const Objects& a, const Objects& b) { return less(a, b); });
    instances.erase(std::unique(instances.begin(), instances.end()), instances.end());
    return FOUND;
  }

  // Acting

  // Make a fact hold or cease to; return whether it did not before.
  bool set(int number, Row row, bool present) { return set(*sources_[number], row, present); }

  // Note that the chosen action is carried out.
  void note() {
    done.push_back(chosen);
    done_arguments.insert(done_arguments.end(), arguments.begin(), arguments.end());
  }

  // Choose and act until there are `bound` actions, or one is to be carried out elsewhere; or for one step.
  Status run(size_t bound, bool stops) {
    while (done.size() < bound) {
      Status status = open_goals ? choose() : NO_RULE;
      if (status != FOUND) return status;
      const Rule& rule = rules_[chosen];
      values_of(rule.arguments, found, arguments);
      if (!rule.is_certain) return FOUND;
      note();
      for (bool present : {true, false}) {
        auto& changes = present ? came : went;
        changes.clear();
        for (const Effect& effect : present ? rule.adds : rule.deletes) {
          values_of(effect.terms, found, row_);
          if (!present && is_added(rule.adds, effect)) continue;
          if (set(*effect.source, row_.data(), present) && stops) changes.emplace_back(effect.source->number, row_);
        }
      }
      if (stops) return CHANGED;
    }
    return DONE;
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

  std::vector<Source*> sources(Plan& plan) {
    std::vector<Source*> found;
    for (int number : plan.list()) found.push_back(sources_[number].get());
    return found;
  }

  Effects effects(Plan& plan) {
    Effects found;
    plan.each([&] {
      Source* source = sources_[plan.next()].get();
      found.push_back({source, plan.list()});
    });
    return found;
  }

  // Joins

  void count_work(int rule) {
    if (++work_ <= most_work) return;
    chosen = rule;
    throw std::overflow_error("too many rows");
  }

  // Call the function for all values that the steps allow from some step on.
  template <class Function>
  void each(Join& join, Function&& function, size_t from = 0) {
    Steps& steps = join.steps;
    for (; from < steps.size() && steps[from].kind != Step::LIST; ++from)
      if (!steps[from].holds(join.values)) return;
    if (from == steps.size()) return function();
    Step& step = steps[from];
    auto visit = [&](Number number) {
      count_work(join.rule);
      if (bind_row(step.relation->row(number), step.binds, step.same, join.values)) each(join, function, from + 1);
    };
    if (step.index < 0) return step.relation->each(visit);
    const Index& index = step.relation->indexes()[step.index];
    for (Number number = index.first(step.key_from(join.values)); number != NONE; number = index.next(number))
      visit(number);
  }

  bool find(Search& search, Objects& result) { return hold(search.guards, search.values) && read(search, 0, result); }

  // Find the first instance that the values of the slots so far allow; or while collecting, keep all and find none.
  bool read(Search& search, size_t place, Objects& result) {
    if (place == search.reads.size()) {
      result.clear();
      for (int slot : search.outputs) result.push_back(search.values[slot]);
      if (is_collecting_) instances.push_back(result);
      return !is_collecting_;
    }
    Read& next = search.reads[place];
    for (size_t i = 0; i < next.key.size(); ++i) next.row[i] = search.values[next.key[i]];
    Number number = next.view->source.relation.find(next.row.data());
    if (number == NONE) return false;
    bool any = false;
    Objects candidate;
    next.view->values[number].any([&](Object value) {
      count_work(chosen);
      search.values[next.slot] = value;
      if (!hold(next.filters, search.values)) return false;
      if (!next.compares) return any = read(search, place + 1, result);
      if (read(search, place + 1, candidate) && (!any || less(candidate, result))) {
        result.swap(candidate);
        any = true;
      }
      return false;
    });
    return any;
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
    return true;
  }

  // Find the first instance of the first rule that has one, if it comes several times the first of them all.
  Status find_first(bool serving) {
    bool any = false;
    Objects candidate;
    for (size_t number = 0; number < rules_.size(); ++number) {
      Rule& rule = rules_[number];
      if (any && rule.place != chosen) break;
      if (rule.serves != serving || !can_apply(rule)) continue;
      chosen = rule.place;
      unplanned = int(number);
      if (!rule.is_planned) return PLAN;
      if (!find(rule.search, candidate) || (any && !less(candidate, found))) continue;
      found.swap(candidate);
      any = true;
    }
    return any ? FOUND : NO_RULE;
  }

  // Replace what was chosen by what serves the goal that the last choice served, if it serves another one.
  Status stay() {
    int first = chosen;
    Goal& goal = rules_[first].goal;
    values_of(goal.terms, found, row_);
    if (goal.facts == served_.facts && row_ == served_.terms) return FOUND;
    if (served_.facts && !served_.facts->relation.has(served_.terms.data())) {
      first_found_ = found;
      Status status = find_first(true);
      if (status != NO_RULE) return status;
      chosen = first;
      found = first_found_;
    }
    if (served_.facts) set(*served_.served, served_.terms.data(), false);
    served_ = goal;
    values_of(goal.terms, found, served_.terms);
    if (served_.facts) set(*served_.served, served_.terms.data(), true);
    return FOUND;
  }

  // Facts

  bool set(Source& source, Row row, bool present) {
    Number number = source.relation.find(row);
    if ((number != NONE) == present) return false;
    pass_on(present ? source.when_absent : source.when_present, row, false);
    if (present) source.relation.add(row);
    else source.relation.remove(number);
    pass_on(present ? source.when_present : source.when_absent, row, true);
    if (source.goals && source.goals->wanted.has(row)) {
      set(*source.goals, row, !present);
      open_goals += present ? -1 : 1;
    }
    return true;
  }

  static void values_of(const Terms& terms, const Objects& given, Objects& values) {
    values.clear();
    for (int term : terms) values.push_back(term < 0 ? -1 - term : given[term]);
  }

  // Whether some effect adds the fact that another deletes, which is in `row_`: then it stays.
  bool is_added(const Effects& adds, const Effect& deleted) {
    for (const Effect& effect : adds) {
      if (effect.source != deleted.source) continue;
      values_of(effect.terms, found, other_row_);
      if (other_row_ == row_) return true;
    }
    return false;
  }

  void pass_on(const std::vector<Change*>& changes, Row row, bool appearing) {
    for (Change* change : changes)
      if (bind_row(row, change->binds, change->same, change->join.values))
        each(change->join, [&] { put(*change->view, change->join.values, appearing); });
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
  std::vector<Rule> rules_;
  int64_t work_ = 0;
  bool is_collecting_ = false;
  Goal served_{};  // the goal fact that is being served
  Objects row_, other_row_, first_found_;
};

}  // namespace bilevel
