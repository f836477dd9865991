; The same, with another parcel somewhere else.
(define (problem delivery-training-5)
  (:domain delivery)
  (:objects book vase crate - parcel depot mill farm - place red - van)
  (:init (van-at red depot) (in crate red)
    (at book depot) (addressed-to book mill)
    (at vase farm) (addressed-to vase mill))
  (:goal (and (delivered book) (delivered vase))))
