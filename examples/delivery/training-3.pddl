; One parcel lies at its address already, where nobody has signed for it.
(define (problem delivery-training-3)
  (:domain delivery)
  (:objects book lamp - parcel depot mill farm - place red - van)
  (:init (van-at red depot) (empty red)
    (at book depot) (addressed-to book mill)
    (at lamp farm) (addressed-to lamp farm))
  (:goal (and (delivered book) (delivered lamp))))
