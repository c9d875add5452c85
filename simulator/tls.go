package simulator

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"
)

// Authority is a certificate authority for tests: a client trusts its servers
// once it has been given the authority's certificate, and no others.
type Authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// NewAuthority makes an authority that nobody trusts yet.
func NewAuthority() (*Authority, error) {
	a := &Authority{}
	now := time.Now()
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: "Simulated authority"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	var err error
	if a.key, a.certificate, err = issue(template, nil, nil); err != nil {
		return nil, fmt.Errorf("simulator: make an authority: %w", err)
	}
	return a, nil
}

// PEM is the authority's certificate, as clients read it.
func (a *Authority) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw})
}

// WriteFile writes the authority's certificate to a file that a client can be
// pointed at, by SSL_CERT_FILE for instance.
func (a *Authority) WriteFile(path string) error {
	if err := os.WriteFile(path, a.PEM(), 0o600); err != nil {
		return fmt.Errorf("simulator: write the authority: %w", err)
	}
	return nil
}

// TLS is for a server whose certificate is good for hosts, which are names or
// addresses; for 127.0.0.1 if none is given.
func (a *Authority) TLS(hosts ...string) (*tls.Config, error) {
	return a.server(time.Now().Add(24*time.Hour), hosts)
}

// ExpiredTLS is for a server whose certificate ran out an hour ago.
func (a *Authority) ExpiredTLS(hosts ...string) (*tls.Config, error) {
	return a.server(time.Now().Add(-time.Hour), hosts)
}

func (a *Authority) server(until time.Time, hosts []string) (*tls.Config, error) {
	if len(hosts) == 0 {
		hosts = []string{"127.0.0.1"}
	}
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: hosts[0]},
		NotBefore: until.Add(-48 * time.Hour), NotAfter: until,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	key, certificate, err := issue(template, a.certificate, a.key)
	if err != nil {
		return nil, fmt.Errorf("simulator: make a certificate: %w", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{certificate.Raw}, PrivateKey: key}}}, nil
}

// issue makes a key and its certificate, signed by an authority or by itself.
func issue(template, by *x509.Certificate, byKey *ecdsa.PrivateKey) (*ecdsa.PrivateKey, *x509.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 100)); err != nil {
		return nil, nil, err
	}
	if by == nil {
		by, byKey = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by, &key.PublicKey, byKey)
	if err != nil {
		return nil, nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	return key, certificate, err
}

// TearHandshakes ends the next n TLS handshakes abruptly, once the client's first
// message has arrived. They are connections without a request, so the ledger does
// not have them; see [Server.Connections].
func (s *Server) TearHandshakes(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tear = n
}

// Connections is how many connections have been accepted.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accepts
}

// tearing is a server's TLS with the handshakes that are to be torn, and
// without HTTP/2, whose frames a step cannot cut.
func (s *Server) tearing(cfg *tls.Config) *tls.Config {
	cfg = cfg.Clone()
	cfg.NextProtos = []string{"http/1.1"}
	cfg.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		s.mu.Lock()
		torn := s.tear > 0
		if torn {
			s.tear--
		}
		s.mu.Unlock()
		if !torn {
			return nil, nil
		}
		hello.Conn.Close()
		return nil, errors.New("simulator: the handshake is torn here")
	}
	return cfg
}
