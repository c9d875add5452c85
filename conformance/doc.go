// Package conformance holds one suite per kind of adapter: it takes an adapter
// and a simulator of its outside, drives the one through the faults of the
// other, and shows what every adapter of that kind must guarantee. Adapters of
// this project run the same suites as those of third parties.
//
//	func TestConformance(t *testing.T) {
//		conformance.Channel(t, func(t *testing.T) conformance.ChannelAdapter { … })
//	}
//
// A suite judges by what arrived on the simulator's socket and by the
// contract.Failure that the adapter returned, never by its internals.
package conformance
