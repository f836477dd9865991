; Rovers drive from any waypoint to any other, take samples and images, and report them to the lander.
(define (domain rovers)
  (:requirements :strips :typing)
  (:types rover waypoint store camera mode lander objective)
  (:predicates (at ?r - rover ?w - waypoint) (lander-at ?l - lander ?w - waypoint) (visible ?w ?w2 - waypoint)
               (takes-soil ?r - rover) (takes-rock ?r - rover) (takes-images ?r - rover)
               (store-of ?s - store ?r - rover) (empty ?s - store) (full ?s - store)
               (soil-at ?w - waypoint) (rock-at ?w - waypoint)
               (has-soil ?r - rover ?w - waypoint) (has-rock ?r - rover ?w - waypoint)
               (on-board ?c - camera ?r - rover) (supports ?c - camera ?m - mode) (calibrated ?c - camera ?r - rover)
               (calibration-target ?c - camera ?o - objective) (visible-from ?o - objective ?w - waypoint)
               (has-image ?r - rover ?o - objective ?m - mode)
               (soil-reported ?w - waypoint) (rock-reported ?w - waypoint) (image-reported ?o - objective ?m - mode))
  (:action navigate
    :parameters (?r - rover ?from ?to - waypoint)
    :precondition (at ?r ?from)
    :effect (and (at ?r ?to) (not (at ?r ?from))))
  (:action sample-soil
    :parameters (?r - rover ?s - store ?w - waypoint)
    :precondition (and (at ?r ?w) (soil-at ?w) (takes-soil ?r) (store-of ?s ?r) (empty ?s))
    :effect (and (has-soil ?r ?w) (full ?s) (not (empty ?s)) (not (soil-at ?w))))
  (:action sample-rock
    :parameters (?r - rover ?s - store ?w - waypoint)
    :precondition (and (at ?r ?w) (rock-at ?w) (takes-rock ?r) (store-of ?s ?r) (empty ?s))
    :effect (and (has-rock ?r ?w) (full ?s) (not (empty ?s)) (not (rock-at ?w))))
  (:action drop
    :parameters (?r - rover ?s - store)
    :precondition (and (store-of ?s ?r) (full ?s))
    :effect (and (empty ?s) (not (full ?s))))
  (:action calibrate
    :parameters (?r - rover ?c - camera ?o - objective ?w - waypoint)
    :precondition (and (takes-images ?r) (calibration-target ?c ?o) (at ?r ?w) (visible-from ?o ?w) (on-board ?c ?r))
    :effect (calibrated ?c ?r))
  (:action take-image
    :parameters (?r - rover ?w - waypoint ?o - objective ?c - camera ?m - mode)
    :precondition (and (calibrated ?c ?r) (on-board ?c ?r) (takes-images ?r) (supports ?c ?m) (visible-from ?o ?w)
                       (at ?r ?w))
    :effect (and (has-image ?r ?o ?m) (not (calibrated ?c ?r))))
  (:action report-soil
    :parameters (?r - rover ?l - lander ?w ?here ?there - waypoint)
    :precondition (and (at ?r ?here) (lander-at ?l ?there) (has-soil ?r ?w) (visible ?here ?there))
    :effect (soil-reported ?w))
  (:action report-rock
    :parameters (?r - rover ?l - lander ?w ?here ?there - waypoint)
    :precondition (and (at ?r ?here) (lander-at ?l ?there) (has-rock ?r ?w) (visible ?here ?there))
    :effect (rock-reported ?w))
  (:action report-image
    :parameters (?r - rover ?l - lander ?o - objective ?m - mode ?here ?there - waypoint)
    :precondition (and (at ?r ?here) (lander-at ?l ?there) (has-image ?r ?o ?m) (visible ?here ?there))
    :effect (image-reported ?o ?m)))
