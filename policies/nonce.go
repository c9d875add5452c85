package policies

import (
	"crypto/sha256"
	"encoding/base32"
	"strconv"
	"time"
)

const (
	// nonceBytes of a digest are 24 characters of base32; Discord takes 25.
	nonceBytes = 15

	// discordEpoch is the first millisecond of 2015, from which Discord counts
	// its snowflakes, and snowflakeShift the bits below the time
	// (discord.com/developers/docs/reference#snowflakes).
	discordEpoch   = 1420070400000
	snowflakeShift = 22
)

var nonceEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// Nonce makes the Discord nonce of an idempotency tag: 24 characters, always
// the same for the same tag (C2.1).
func Nonce(tag string) string {
	sum := sha256.Sum256([]byte(tag))
	return nonceEncoding.EncodeToString(sum[:nonceBytes])
}

// Snowflake is the lowest Discord id of the millisecond of t, to read messages
// from that moment on (C4). Moments before Discord's epoch give "0".
func Snowflake(t time.Time) string {
	ms := max(t.UnixMilli()-discordEpoch, 0)
	ms = min(ms, int64(1)<<(63-snowflakeShift)-1)
	return strconv.FormatInt(ms<<snowflakeShift, 10)
}
