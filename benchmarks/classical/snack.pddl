; Sandwiches are made of bread and a filling, put on a tray, and served; allergic children get those without gluten.
(define (domain snack)
  (:requirements :strips :typing :negative-preconditions)
  (:types child bread filling sandwich tray place)
  (:constants kitchen - place)
  (:predicates (bread-there ?b - bread) (filling-there ?f - filling) (no-gluten-bread ?b - bread)
               (no-gluten-filling ?f - filling) (no-gluten ?s - sandwich) (unmade ?s - sandwich)
               (made ?s - sandwich) (on-tray ?s - sandwich ?t - tray) (tray-at ?t - tray ?p - place)
               (allergic ?c - child) (served ?c - child) (waiting ?c - child ?p - place))
  (:action make-without-gluten
    :parameters (?s - sandwich ?b - bread ?f - filling)
    :precondition (and (bread-there ?b) (filling-there ?f) (no-gluten-bread ?b) (no-gluten-filling ?f) (unmade ?s))
    :effect (and (made ?s) (no-gluten ?s) (not (bread-there ?b)) (not (filling-there ?f)) (not (unmade ?s))))
  (:action make
    :parameters (?s - sandwich ?b - bread ?f - filling)
    :precondition (and (bread-there ?b) (filling-there ?f) (unmade ?s))
    :effect (and (made ?s) (not (bread-there ?b)) (not (filling-there ?f)) (not (unmade ?s))))
  (:action put-on-tray
    :parameters (?s - sandwich ?t - tray)
    :precondition (and (made ?s) (tray-at ?t kitchen))
    :effect (and (on-tray ?s ?t) (not (made ?s))))
  (:action serve-allergic
    :parameters (?s - sandwich ?c - child ?t - tray ?p - place)
    :precondition (and (on-tray ?s ?t) (tray-at ?t ?p) (waiting ?c ?p) (allergic ?c) (no-gluten ?s) (not (served ?c)))
    :effect (and (served ?c) (not (on-tray ?s ?t))))
  (:action serve
    :parameters (?s - sandwich ?c - child ?t - tray ?p - place)
    :precondition (and (on-tray ?s ?t) (tray-at ?t ?p) (waiting ?c ?p) (not (allergic ?c)) (not (served ?c)))
    :effect (and (served ?c) (not (on-tray ?s ?t))))
  (:action move-tray
    :parameters (?t - tray ?from ?to - place)
    :precondition (tray-at ?t ?from)
    :effect (and (tray-at ?t ?to) (not (tray-at ?t ?from)))))
