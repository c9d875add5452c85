package temporalserver

import (
	"net/netip"
	"time"

	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/membership/static"
	sqliteplugin "go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	"go.temporal.io/server/common/primitives"
)

const (
	clusterName = "active"
	// clusterID is the same for every store, so that a restart is the same
	// cluster.
	clusterID = "5e0f6c3a-7f0b-4a57-9b1e-8c1d3b7a2f10"
)

// services are the four parts of the server, in the order of the addresses they
// get.
var services = []primitives.ServiceName{
	primitives.FrontendService,
	primitives.HistoryService,
	primitives.MatchingService,
	primitives.WorkerService,
}

// serverConfig puts each service on its address: one shard (the store has one
// writer), no membership protocol, no metrics or profiling listener.
func serverConfig(store *config.SQL, addrs []netip.AddrPort) *config.Config {
	frontend := dialable(addrs[0]).String()
	cfg := &config.Config{
		Persistence: config.Persistence{
			DefaultStore:     sqliteplugin.PluginName,
			VisibilityStore:  sqliteplugin.PluginName,
			NumHistoryShards: 1,
			DataStores:       map[string]config.DataStore{sqliteplugin.PluginName: {SQL: store}},
		},
		ClusterMetadata: &cluster.Config{
			FailoverVersionIncrement: 10,
			MasterClusterName:        clusterName,
			CurrentClusterName:       clusterName,
			ClusterInformation: map[string]cluster.ClusterInformation{
				clusterName: {Enabled: true, InitialFailoverVersion: 1, RPCAddress: frontend, ClusterID: clusterID},
			},
		},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
		Services:            map[string]config.Service{},
		Archival: config.Archival{
			History:    config.HistoryArchival{State: "disabled"},
			Visibility: config.VisibilityArchival{State: "disabled"},
		},
		NamespaceDefaults: config.NamespaceDefaults{
			Archival: config.ArchivalNamespaceDefaults{
				History:    config.HistoryArchivalNamespaceDefaults{State: "disabled"},
				Visibility: config.VisibilityArchivalNamespaceDefaults{State: "disabled"},
			},
		},
		PublicClient: config.PublicClient{HostPort: frontend},
	}
	cfg.Global.Membership = config.Membership{MaxJoinDuration: 30 * time.Second, BroadcastAddress: "127.0.0.1"}
	for i, service := range services {
		cfg.Services[string(service)] = config.Service{
			RPC: config.RPC{GRPCPort: int(addrs[i].Port()), BindOnIP: addrs[i].Addr().String()},
		}
	}
	return cfg
}

func staticHosts(addrs []netip.AddrPort) map[primitives.ServiceName]static.Hosts {
	hosts := make(map[primitives.ServiceName]static.Hosts, len(services))
	for i, service := range services {
		hosts[service] = static.SingleLocalHost(dialable(addrs[i]).String())
	}
	return hosts
}

// dynamicConfig is what we change of the server's behaviour. deploy/dynamicconfig.yaml
// has the keys that also suit a production server.
func dynamicConfig() dynamicconfig.StaticClient {
	return dynamicconfig.StaticClient{
		// A shard loads its queues at most this often per second. The default of
		// 20 makes each hop of a single piece of work wait for the next 50 ms.
		dynamicconfig.TransferProcessorMaxPollRPS.Key():   5000,
		dynamicconfig.TimerProcessorMaxPollRPS.Key():      5000,
		dynamicconfig.VisibilityProcessorMaxPollRPS.Key(): 5000,

		// A timer that is due sooner than this after the queue was last read is put
		// off to then, for clocks of several hosts that differ. The default of 1 s
		// makes retries of half a second late by as much; here there is one clock.
		dynamicconfig.TimerProcessorMaxTimeShift.Key(): 5 * time.Millisecond,

		// With four partitions a few pollers leave tasks in partitions that nobody
		// polls for seconds. Reading and writing must agree.
		dynamicconfig.MatchingNumTaskqueueReadPartitions.Key():  1,
		dynamicconfig.MatchingNumTaskqueueWritePartitions.Key(): 1,

		// Goroutines that one shard never uses.
		dynamicconfig.TransferProcessorSchedulerWorkerCount.Key():   32,
		dynamicconfig.TimerProcessorSchedulerWorkerCount.Key():      32,
		dynamicconfig.VisibilityProcessorSchedulerWorkerCount.Key(): 2,
		dynamicconfig.ArchivalProcessorSchedulerWorkerCount.Key():   2,

		// The default of 10 list or count calls per second is one open UI page.
		dynamicconfig.FrontendMaxNamespaceVisibilityRPSPerInstance.Key(): 200,

		// No calls to the vendor.
		dynamicconfig.EnableServerVersionCheck.Key(): false,
	}
}
