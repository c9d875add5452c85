// Package openai simulates the Responses API of OpenAI, streaming and not.
//
// What it takes from OpenAI's public documentation: POST /v1/responses answers
// with a response object or, with "stream": true, with server-sent events that
// each carry a sequence number and end with response.completed,
// response.incomplete or response.failed (there is no [DONE]); GET /v1/models and
// the error object {"error": {message, type, param, code}}; x-ratelimit-* headers.
//
// The answer is made by a function of the prompt. By default it is a text of
// several sentences, always the same for the same prompt, sent in words, so that
// it can be cut anywhere. max_output_tokens below the length of the answer ends it
// as incomplete.
//
// Other dialects get packages of their own beside this one.
package openai
