//go:build !race

package git

const raceDetector = false
