// Package openai speaks OpenAI's Responses wire (M1.1), streaming and not,
// through openai-go's types and request building.
//
// The library's retries and environment defaults are off, and frames are read
// by internal/sse: the library's own reader calls a stream that ends without
// its terminal event a success, and treats any top-level "error" key, even
// null, as a failure.
package openai
