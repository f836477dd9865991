// Relations, the views of them, and what changes when facts come and go: see join_plan.py for the idea.
#pragma once

#include "relation.hpp"

namespace bilevel {

// Where a column of a row goes to, or with what it must agree: a slot holds the value of a variable or a constant.
struct Place {
  int column, slot;
};

// One step of a join: check a literal whose terms all have values, or list its rows, given some of them.
struct Step {
  enum Kind { PRESENT, ABSENT, UNEQUAL, LIST };
  Kind kind;
  Relation* relation = nullptr;
  int index = -1;            // to list by; if there is none, all rows are listed
  std::vector<int> slots;    // of the terms that have values
  std::vector<Place> binds;  // the others
  std::vector<Place> same;   // a variable that occurs twice among them
  std::vector<Object> key{};

  Row key_from(const std::vector<Object>& values) {
    key.resize(slots.size());
    for (size_t i = 0; i < slots.size(); ++i) key[i] = values[slots[i]];
    return key.data();
  }

  bool holds(const std::vector<Object>& values) {
    if (kind == UNEQUAL) return values[slots[0]] != values[slots[1]];
    return relation->has(key_from(values)) == (kind == PRESENT);
  }
};

inline bool bind(Row row, const std::vector<Place>& binds, const std::vector<Place>& same, std::vector<Object>& values) {
  for (Place place : binds) values[place.slot] = row[place.column];
  for (Place place : same)
    if (values[place.slot] != row[place.column]) return false;
  return true;
}

struct Join {
  std::vector<Object> values;  // of the slots; constants have theirs from the beginning
  std::vector<Step> steps;

  // Call the function for all values that the steps allow from some step on; where they are known to, check nothing.
  template <class Function>
  void each(bool check, Function&& function, size_t from = 0) {
    for (; from < steps.size() && steps[from].kind != Step::LIST; ++from)
      if (check && !steps[from].holds(values)) return;
    if (from == steps.size()) return function();
    Step& step = steps[from];
    auto visit = [&](Number number) {
      if (bind(step.relation->row(number), step.binds, step.same, values)) each(check, function, from + 1);
    };
    if (step.index < 0) return step.relation->each(visit);
    const Index& index = step.relation->indexes()[step.index];
    for (Number number = index.first(step.key_from(values)); number != NONE; number = index.next(number)) visit(number);
  }
};

struct View;

// How a view changes when a row of one of its literals' relations comes or goes.
struct Change {
  View* view;
  Join join;
  std::vector<Place> binds, same;
};

// A relation with all that depends on it.
struct Source {
  int number;
  Relation relation;
  std::vector<Change*> when_present, when_absent;
  Source* closure = nullptr;

  Source(int number, int arity, bool keeps_rows) : number(number), relation(arity, keeps_rows) {}
};

// For each key the values that satisfy the view's literals. A view that no rule uses at present is empty.
struct View {
  Source source;  // the keys
  std::vector<SortedSet> values{};
  Join building{};
  std::vector<int> key_slots{};
  int value_slot = 0;
  int users = 0;
  int64_t work = 0, cost = 0;  // entries touched so far, and when it was built
  std::vector<Object> key{};
};

class Views {
 public:
  Order order;

  std::vector<Source*> sources;  // of relations and of views' keys, by number
  std::vector<View*> views;      // by the number of their keys; none for other relations

  Source* add_relation(int arity, bool keeps_rows) {
    sources.push_back(own(sources_, new Source(int(sources.size()), arity, keeps_rows)));
    views.push_back(nullptr);
    return sources.back();
  }

  View* add_view(int arity) {
    views.push_back(own(views_, new View{Source(int(sources.size()), arity, false)}));
    views.back()->key.resize(arity);
    sources.push_back(&views.back()->source);
    return views.back();
  }

  Change* add_change(View* view, Source* source, bool present) {
    Change* change = own(changes_, new Change{view, {}, {}, {}});
    (present ? source->when_present : source->when_absent).push_back(change);
    return change;
  }

  void load(Source* source, const Object* terms, size_t count) {
    for (size_t i = 0; i < count; ++i, terms += source->relation.arity())
      if (!source->relation.has(terms)) source->relation.add(terms);
  }

  void mark_achieved(Source* goal, const Object* facts, size_t count) {
    for (size_t i = 0; i < count; ++i, facts += goal->relation.arity()) {
      Number number = goal->relation.find(facts);
      if (number != NONE) goal->relation.remove(number);
    }
  }

  static std::vector<Object> terms(const Source& source) {
    std::vector<Object> terms;
    source.relation.each([&](Number number) {
      Row row = source.relation.row(number);
      terms.insert(terms.end(), row, row + source.relation.arity());
    });
    return terms;
  }

  void begin_to_use(View* view) {
    if (view->users++) return;
    int64_t before = view->work;
    view->building.each(true, [&] { put(*view, view->building.values, true); });
    view->cost = view->work - before;
  }

  void cease_to_use(View* view) {
    if (--view->users) return;
    view->source.relation.clear();
    std::vector<SortedSet>().swap(view->values);
  }

  void add_row(Source& source, Row row) {
    pass_on(source.when_absent, row, false);
    source.relation.add(row);
    pass_on(source.when_present, row, true);
    if (source.closure) link(source, row);
  }

  void remove_row(Source& source, Number number, Row row) {
    pass_on(source.when_present, row, false);
    source.relation.remove(number);
    pass_on(source.when_absent, row, true);
    if (source.closure) unlink(source, row);
  }

  // Make a closure hold what follows from its relation.
  void close(Source& source) {
    source.relation.index({0});
    std::vector<Object> starts;
    source.relation.each([&](Number number) { starts.push_back(source.relation.row(number)[0]); });
    for (Object start : starts) reach_from(source, start);
  }

 private:
  template <class Thing>
  static Thing* own(std::vector<std::unique_ptr<Thing>>& all, Thing* made) {
    all.emplace_back(made);
    return made;
  }

  void pass_on(const std::vector<Change*>& changes, Row row, bool appearing) {
    for (Change* change : changes)
      if (change->view->users && bind(row, change->binds, change->same, change->join.values))
        change->join.each(appearing, [&] { put(*change->view, change->join.values, appearing); });
  }

  // Put an entry into a view or take it out; whoever asks about the key hears of the first and the last.
  void put(View& view, const std::vector<Object>& values, bool appearing) {
    ++view.work;
    for (size_t i = 0; i < view.key.size(); ++i) view.key[i] = values[view.key_slots[i]];
    Row key = view.key.data();
    Relation& keys = view.source.relation;
    Number number = keys.find(key);
    Object value = values[view.value_slot];
    if (appearing) {
      if (number != NONE) {
        view.values[number].insert(value, order);
        return;
      }
      number = keys.add(key);
      if (view.values.size() <= number) view.values.resize(number + 1);
      view.values[number].insert(value, order);
      pass_on(view.source.when_present, key, true);
    } else if (number != NONE && view.values[number].erase(value, order) && view.values[number].empty()) {
      pass_on(view.source.when_present, key, false);
      keys.remove(number);
    }
  }

  void link(Source& source, Row row) {
    reach_from(source, row[0]);
    for (Object start : that_reach(source, row[0])) reach_from(source, start);
  }

  void unlink(Source& source, Row row) {
    std::vector<Object> starts = that_reach(source, row[0]);
    reach_from(source, row[0]);
    for (Object start : starts) reach_from(source, start);
  }

  std::vector<Object> that_reach(Source& source, Object end) {
    Relation& closure = source.closure->relation;
    const Index& by_end = closure.indexes()[closure.index({1})];
    std::vector<Object> starts;
    for (Number n = by_end.first(&end); n != NONE; n = by_end.next(n)) starts.push_back(closure.row(n)[0]);
    return starts;
  }

  // Bring up to date what the closure says of one object.
  void reach_from(Source& source, Object start) {
    Relation &steps = source.relation, &closure = source.closure->relation;
    int by_start = steps.index({0}), from = closure.index({0});
    std::vector<Object> reached, stale, queue{start};
    RowTable seen(1);
    for (size_t i = 0; i < queue.size(); ++i)
      for (Number n = steps.indexes()[by_start].first(&queue[i]); n != NONE; n = steps.indexes()[by_start].next(n)) {
        Object there = steps.row(n)[1];
        if (seen.find(&there) != NONE) continue;
        seen.insert(&there);
        queue.push_back(there);
      }
    for (Number n = closure.indexes()[from].first(&start); n != NONE; n = closure.indexes()[from].next(n))
      if (seen.find(closure.row(n) + 1) == NONE) stale.push_back(closure.row(n)[1]);
    for (size_t i = 1; i < queue.size(); ++i) {
      Object pair[2] = {start, queue[i]};
      if (!closure.has(pair)) add_row(*source.closure, pair);
    }
    for (Object there : stale) {
      Object pair[2] = {start, there};
      remove_row(*source.closure, closure.find(pair), pair);
    }
  }

  std::vector<std::unique_ptr<Source>> sources_;
  std::vector<std::unique_ptr<View>> views_;
  std::vector<std::unique_ptr<Change>> changes_;
};

}  // namespace bilevel
