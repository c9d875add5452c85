// Package contract is what a gateway and Holdfast say to each other: the names
// of workflows, activities, queues, queries and updates, and the inputs and
// results that travel with them.
//
// It imports the standard library only. Every type is plain data that
// marshals to stable snake_case JSON; fields are only ever added. Durations are
// strings that [time.ParseDuration] reads ("90s", "24h").
package contract
