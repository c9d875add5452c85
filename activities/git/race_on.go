//go:build race

package git

const raceDetector = true
