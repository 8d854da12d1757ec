package main

import (
	"encoding/json"
	"os"

	"github.com/apache/pulsar-client-go/pulsar"
)

// Who comes and where to, as the test that starts the cluster tells.
type identities struct {
	Topic, Issuer, Audience, Key, Stranger, ServiceURLTLS, Authority string
}

func init() {
	registerFor("identities", "basic", func(b *bench) { b.publishAs(b.password("admin", "admin-word"), true) })
	registerFor("identities", "basic_without_grant", func(b *bench) { b.publishAs(b.password("nobody", "word"), false) })
	registerFor("identities", "issuer", func(b *bench) { b.publishAs(told().byIssuer(told().Key), true) })
	registerFor("identities", "issuer_without_grant", func(b *bench) { b.publishAs(told().byIssuer(told().Stranger), false) })
	registerFor("identities", "inside_tls", func(b *bench) {
		b.serviceURL = told().ServiceURLTLS
		b.publishAs(b.password("admin", "admin-word"), true)
	})
}

func told() (given identities) {
	check(json.Unmarshal([]byte(os.Getenv("IDENTITIES")), &given))
	return given
}

func (b *bench) password(user, password string) pulsar.Authentication {
	who, err := pulsar.NewAuthenticationBasic(user, password)
	check(err)
	return who
}

func (given identities) byIssuer(key string) pulsar.Authentication {
	return pulsar.NewAuthenticationOAuth2(map[string]string{
		"type": "client_credentials", "issuerUrl": given.Issuer, "audience": given.Audience, "privateKey": key,
		"clientId": "interop",
	})
}

func (b *bench) publishAs(who pulsar.Authentication, allowed bool) {
	client, err := pulsar.NewClient(pulsar.ClientOptions{
		URL:                   b.serviceURL,
		Authentication:        who,
		OperationTimeout:      patience,
		TLSTrustCertsFilePath: told().Authority,
		Logger:                silent,
	})
	check(err)
	defer client.Close()
	producer, err := client.CreateProducer(pulsar.ProducerOptions{Topic: told().Topic})
	if allowed {
		check(err)
		producer.Close()
		return
	}
	require(err != nil, "a role without a grant publishes")
}
