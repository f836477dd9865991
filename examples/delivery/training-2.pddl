; The van has to come for the parcel first.
(define (problem delivery-training-2)
  (:domain delivery)
  (:objects book - parcel depot mill farm - place red - van)
  (:init (van-at red farm) (empty red) (at book depot) (addressed-to book mill))
  (:goal (delivered book)))
