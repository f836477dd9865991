; Two hands fill glasses from dispensers, pour them into a shaker, and clean them again.
(define (domain barman)
  (:requirements :strips :typing)
  (:types hand container ingredient dispenser - object
          glass shaker - container)
  (:predicates (on-table ?c - container) (holding ?h - hand ?c - container) (hand-empty ?h - hand)
               (clean ?c - container) (empty ?c - container) (contains ?c - container ?i - ingredient)
               (used ?c - container ?i - ingredient) (dispenses ?d - dispenser ?i - ingredient))
  (:action grasp
    :parameters (?h - hand ?c - container)
    :precondition (and (on-table ?c) (hand-empty ?h))
    :effect (and (holding ?h ?c) (not (on-table ?c)) (not (hand-empty ?h))))
  (:action leave
    :parameters (?h - hand ?c - container)
    :precondition (holding ?h ?c)
    :effect (and (on-table ?c) (hand-empty ?h) (not (holding ?h ?c))))
  (:action fill
    :parameters (?g - glass ?i - ingredient ?h ?other - hand ?d - dispenser)
    :precondition (and (holding ?h ?g) (hand-empty ?other) (dispenses ?d ?i) (empty ?g) (clean ?g))
    :effect (and (contains ?g ?i) (used ?g ?i) (not (empty ?g)) (not (clean ?g))))
  (:action pour
    :parameters (?g - glass ?s - shaker ?i - ingredient ?h - hand)
    :precondition (and (holding ?h ?g) (contains ?g ?i) (empty ?s) (clean ?s))
    :effect (and (contains ?s ?i) (empty ?g) (not (contains ?g ?i)) (not (empty ?s)) (not (clean ?s))))
  (:action empty-out
    :parameters (?h - hand ?c - container ?i - ingredient)
    :precondition (and (holding ?h ?c) (contains ?c ?i))
    :effect (and (empty ?c) (not (contains ?c ?i))))
  (:action clean-glass
    :parameters (?h ?other - hand ?g - glass ?i - ingredient)
    :precondition (and (holding ?h ?g) (hand-empty ?other) (empty ?g) (used ?g ?i))
    :effect (and (clean ?g) (not (used ?g ?i))))
  (:action clean-shaker
    :parameters (?h ?other - hand ?s - shaker)
    :precondition (and (holding ?h ?s) (hand-empty ?other) (empty ?s))
    :effect (clean ?s)))
