(define (problem colour-1)
  (:domain colour)
  (:objects
    a - block
    red green blue - colour
    red-tray green-tray blue-tray - tray
    bench - table
    stand - platform
    knob - button)
  (:init
    (on a bench) (unknown a)
    (free stand) (gripper-free)
    (tray-colour red-tray red) (tray-colour green-tray green) (tray-colour blue-tray blue))
  (:goal (and (achieved-goal a))))
