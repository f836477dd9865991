; The same, with the parcel somewhere else.
(define (problem delivery-training-5)
  (:domain delivery)
  (:objects book crate - parcel depot mill farm - place red - van)
  (:init (van-at red depot) (in crate red)
    (at book farm) (addressed-to book mill))
  (:goal (delivered book)))
