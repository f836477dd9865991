; Delivery: vans with room for one parcel bring parcels to their addresses. Any place is one drive from any other.
(define (domain delivery)
  (:requirements :strips :typing)
  (:types parcel place van)
  (:predicates
    (at ?p - parcel ?l - place)
    (in ?p - parcel ?v - van)
    (addressed-to ?p - parcel ?l - place)
    (delivered ?p - parcel)
    (van-at ?v - van ?l - place)
    (empty ?v - van))

  (:action drive
    :parameters (?v - van ?from - place ?to - place)
    :precondition (van-at ?v ?from)
    :effect (and (van-at ?v ?to)
                 (not (van-at ?v ?from))))

  (:action load
    :parameters (?p - parcel ?v - van ?l - place)
    :precondition (and (at ?p ?l) (van-at ?v ?l) (empty ?v))
    :effect (and (in ?p ?v)
                 (not (at ?p ?l)) (not (empty ?v))))

  (:action unload
    :parameters (?p - parcel ?v - van ?l - place)
    :precondition (and (in ?p ?v) (van-at ?v ?l))
    :effect (and (at ?p ?l) (empty ?v)
                 (not (in ?p ?v))))

  (:action deliver
    :parameters (?p - parcel ?v - van ?l - place)
    :precondition (and (in ?p ?v) (van-at ?v ?l) (addressed-to ?p ?l))
    :effect (and (delivered ?p) (empty ?v)
                 (not (in ?p ?v)))))
