#!/bin/sh
# Two cables, port1 and port2, to a switch that speaks LACP and answers in the VLAN 5.
set -eu
modprobe bonding max_bonds=0
modprobe 8021q
ip netns add switch
ip -n switch link add sw type bond mode 802.3ad miimon 100 lacp_rate fast
for n in 1 2; do
  ip link add "port$n" type veth peer name "s$n" netns switch
  ip -n switch link set "s$n" mtu 2000 master sw
  ip -n switch link set "s$n" up
done
ip -n switch link set sw mtu 2000 up
ip -n switch link add sw.5 link sw type vlan id 5
ip -n switch address add 192.0.2.254/24 dev sw.5
ip -n switch link set sw.5 up
