// Package deploy holds the tests of what an operator deploys: docker-compose.yml,
// the Dockerfile and deploy/. It links no server.
package deploy
