// Which rule fires, what it does, and doing so until there is a reason to stop.
#pragma once

#include "rules.hpp"

namespace bilevel {

// The relations, views and rules, all that is known of the state, and what has been done.
class Executor : public Views {
 public:
  enum Status { DONE, NO_RULE, FOUND, SOLVED, LOOP, PLAN, PLAN_SERVING };

  std::vector<Operation> operations;
  std::vector<Source*> goals;
  bool goals_end_it = true;  // all rules have a goal condition

  // What was found last: a rule, the values of its outputs, and the action's arguments.
  int chosen = -1;
  std::vector<Object> found, arguments;

  // What has been done.
  std::vector<int> done;
  std::vector<Object> done_arguments;

  int64_t rest_after = 4096;  // changes of facts before it is looked which views nobody needs; with 0 all are let go
  bool commits = false;
  Source* committed = nullptr;
  std::vector<Object> committed_terms;

  Rule* add_rule() {
    rules_.emplace_back(new Rule);
    return rules_.back().get();
  }
  Rule* rule(size_t number) { return rules_[number].get(); }
  size_t rule_count() const { return rules_.size(); }

  int64_t open_goals() const {
    int64_t count = 0;
    for (const Source* goal : goals) count += int64_t(goal->relation.size());
    return count;
  }

  // Find the first instance of the first rule that has one, from some rule on.
  Status choose(size_t from = 0) {
    if (changes_ >= rest_after) put_to_sleep();
    for (chosen = int(from); chosen < int(rules_.size()); ++chosen) {
      Rule& rule = *rules_[chosen];
      if (!can_apply(rule)) continue;
      if (!rule.is_planned) return PLAN;
      if (holds(rule.guards, rule.guards.steps) && holds(rule.guards, rule.reading.filters) &&
          read(rule.reading, rule.guards.values, 0, found))
        return FOUND;
    }
    return NO_RULE;
  }

  // Find the first instance, of the first rule that has one, that serves a goal fact.
  Status serve(Source* goal, const std::vector<Object>& terms) {
    for (chosen = 0; chosen < int(rules_.size()); ++chosen) {
      Rule& rule = *rules_[chosen];
      if (std::find(rule.served.begin(), rule.served.end(), goal) == rule.served.end() || !can_apply(rule)) continue;
      if (!rule.is_planned) return PLAN;
      if (rule.servings.empty()) return PLAN_SERVING;
      bool any = false;
      for (size_t place = 0; place < rule.served.size(); ++place)
        if (rule.served[place] == goal) any |= serve(rule.servings[place], terms, any);
      if (any) return FOUND;
    }
    return NO_RULE;
  }

  // Choose, staying with the goal that the last choice served while some rule serves it.
  Status choose_committed() {
    Status status = choose();
    if (status != FOUND || !commits) return status;
    Rule& rule = *rules_[chosen];
    Source* goal = rule.served.empty() ? nullptr : rule.served[0];
    values_of(rule.goal, found, terms_);
    if (goal == committed && terms_ == committed_terms) return FOUND;
    if (committed) {
      int first = chosen;
      first_found_.swap(found);
      std::vector<Object> terms = terms_;
      status = serve(committed, committed_terms);
      if (status != NO_RULE) return status;
      chosen = first;
      first_found_.swap(found);
      terms_ = terms;
    }
    committed = goal;
    committed_terms = terms_;
    return FOUND;
  }

  void apply(const Operation& operation, const std::vector<Object>& arguments) {
    for (const Effect& effect : operation.adds) {
      values_of(effect.terms, arguments, row_);
      set(effect.predicate, row_.data(), true);
    }
    for (const Effect& effect : operation.deletes) {
      values_of(effect.terms, arguments, row_);
      if (!is_added(operation, effect, arguments)) set(effect.predicate, row_.data(), false);
    }
  }

  // Make a fact hold or cease to.
  void set(Predicate predicate, Row row, bool present) {
    if (predicate.state) {
      Number number = predicate.state->relation.find(row);
      if ((number != NONE) == present) return;
      ++changes_;
      if (is_watching) fingerprint_ ^= hash(predicate.state, row);
      if (present) add_row(*predicate.state, row);
      else remove_row(*predicate.state, number, row);
    }
    if (predicate.goal) {
      Number number = predicate.goal->relation.find(row);
      if ((number != NONE) != present || !predicate.goal->relation.knows(row)) return;
      if (is_watching && !predicate.state) fingerprint_ ^= hash(predicate.goal, row);
      if (present) remove_row(*predicate.goal, number, row);
      else add_row(*predicate.goal, row);
    }
  }

  // Choose and act until there are `bound` actions, or something is to be done or decided elsewhere.
  Status run(size_t bound) {
    while (done.size() < bound) {
      if (!goals_end_it && !open_goals()) return SOLVED;
      Status status = choose_committed();
      if (status == NO_RULE) return open_goals() ? NO_RULE : SOLVED;
      if (status != FOUND) return status;
      const Rule& rule = *rules_[chosen];
      values_of(rule.arguments, found, arguments);
      if (rule.operation < 0) return FOUND;
      apply(operations[rule.operation], arguments);
      if (note_done() == LOOP) return LOOP;
    }
    return DONE;
  }

  // Note that the chosen action was done; return LOOP if that led back to a marked state.
  Status note_done() {
    done.push_back(chosen);
    done_arguments.insert(done_arguments.end(), arguments.begin(), arguments.end());
    return is_watching && came_back() ? LOOP : DONE;
  }

  // Circles are found in Brent's way: compare with one marked state, and mark anew after twice as many steps. States
  // are compared by a hash that changes with each fact that comes or goes.
  bool is_watching = false;
  int64_t marked_step = 0, last_chance = -1;  // the last step with which nature had to do

  void watch() {
    is_watching = true;
    fingerprint_ = 0;
    patience_ = 1;
    mark(int64_t(done.size()));
  }

  void wake(Rule& rule) {
    for (View* view : rule.views) begin_to_use(view);
    rule.is_awake = true;
    rule.work = work(rule);
  }

 private:
  // Whether it can be that the rule applies; then its views are ready to be asked.
  bool can_apply(Rule& rule) {
    for (const Source* source : rule.needs)
      if (!source->relation.size()) return false;
    if (!holds(rule.ground, rule.ground.steps)) return false;
    rule.was_asked = true;
    if (rule.is_planned && !rule.is_awake) wake(rule);
    return true;
  }

  static bool holds(const Join& join, std::vector<Step>& steps) {
    for (Step& step : steps)
      if (!step.holds(join.values)) return false;
    return true;
  }

  // Find the first instance that the values of the slots so far allow.
  bool read(Reading& reading, std::vector<Object>& values, size_t place, std::vector<Object>& result) {
    if (place == reading.reads.size()) {
      result.clear();
      for (int slot : reading.outputs) result.push_back(values[slot]);
      return true;
    }
    Read& read = reading.reads[place];
    read.row.resize(read.key.size());
    for (size_t i = 0; i < read.key.size(); ++i) read.row[i] = values[read.key[i]];
    Number number = read.view->source.relation.find(read.row.data());
    if (number == NONE) return false;
    bool any = false;
    std::vector<Object> candidate;
    read.view->values[number].any([&](Object value) {
      values[read.slot] = value;
      for (Step& filter : read.filters)
        if (!filter.holds(values)) return false;
      if (!read.compares) return any = this->read(reading, values, place + 1, result);
      if (this->read(reading, values, place + 1, candidate) && (!any || less(candidate, result))) {
        result.swap(candidate);
        any = true;
      }
      return false;
    });
    return any;
  }

  bool less(const std::vector<Object>& one, const std::vector<Object>& other) const {
    for (size_t i = 0; i < one.size(); ++i)
      if (one[i] != other[i]) return order.less(one[i], other[i]);
    return false;
  }

  bool serve(Serving& serving, const std::vector<Object>& terms, bool any) {
    Join& join = serving.join;
    if (!bind(terms.data(), serving.binds, serving.same, join.values) || !holds(join, serving.guards)) return false;
    bool better = false;
    join.each(true, [&] {
      std::vector<Object> candidate;
      if (holds(join, serving.rest.filters) && read(serving.rest, join.values, 0, candidate))
        if (!(any || better) || less(candidate, found)) {
          found.swap(candidate);
          better = true;
        }
    });
    return better;
  }

  static void values_of(const std::vector<Term>& terms, const std::vector<Object>& given, std::vector<Object>& values) {
    values.clear();
    for (Term term : terms) values.push_back(term < 0 ? -1 - term : given[term]);
  }

  // Whether the operation adds the fact of an effect that deletes it, which is in `row_`: then it stays.
  bool is_added(const Operation& operation, const Effect& deleted, const std::vector<Object>& arguments) {
    for (const Effect& effect : operation.adds) {
      if (effect.predicate.state != deleted.predicate.state || effect.predicate.goal != deleted.predicate.goal) continue;
      values_of(effect.terms, arguments, terms_);
      if (terms_ == row_) return true;
    }
    return false;
  }

  static int64_t work(const Rule& rule) {
    int64_t total = 0;
    for (const View* view : rule.views) total += view->work;
    return total;
  }

  // Let go of the views of rules that nobody has asked for so long that building them again would have been cheaper.
  void put_to_sleep() {
    changes_ = 0;
    for (auto& rule : rules_) {
      if (!rule->is_awake || (rest_after && is_worth_keeping(*rule))) continue;
      rule->is_awake = false;
      for (View* view : rule->views) cease_to_use(view);
    }
  }

  bool is_worth_keeping(Rule& rule) {
    int64_t now = work(rule), cost = 0;
    if (rule.was_asked) rule.work = now;
    rule.was_asked = false;
    for (const View* view : rule.views) cost += view->cost;
    return now - rule.work <= 2 * cost + rest_after;
  }

  uint64_t hash(const Source* source, Row row) const {
    uint64_t hash = mixed(source->number);
    for (int i = 0; i < source->relation.arity(); ++i) hash = mixed(hash ^ uint32_t(row[i])) * 0xD6E8FEB86659FD93u;
    return hash;
  }

  void mark(int64_t step) {
    marked_step = step;
    marked_fingerprint_ = fingerprint_;
    marked_goal_ = committed;
    marked_terms_ = committed_terms;
  }

  bool came_back() {
    int64_t step = int64_t(done.size());
    bool same = fingerprint_ == marked_fingerprint_ && committed == marked_goal_ && committed_terms == marked_terms_;
    if (same && last_chance < marked_step) return true;
    if (step - marked_step == patience_) {
      patience_ *= 2;
      mark(step);
    }
    return false;
  }

  std::vector<std::unique_ptr<Rule>> rules_;
  std::vector<Object> row_, terms_, first_found_;
  uint64_t fingerprint_ = 0, marked_fingerprint_ = 0;
  int64_t patience_ = 1, changes_ = 0;
  Source* marked_goal_ = nullptr;
  std::vector<Object> marked_terms_;
};

}  // namespace bilevel
