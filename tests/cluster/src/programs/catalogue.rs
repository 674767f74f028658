//! What programs there are, and what each is built from: data only.
//!
//! Each Go module has a folder of its own in `programs/`, because their dependencies exclude each
//! other. Its files are compiled in, so that the tool needs no checkout at run time.

/// One Go module and what is built from it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Module {
    pub name: &'static str,
    /// For the person who waits.
    pub effort: &'static str,
    pub files: &'static [(&'static str, &'static str)],
    pub binaries: &'static [Binary],
    /// Further names of the first binary, which looks at the name it is called by.
    pub links: &'static [&'static str],
    pub link_flags: &'static str,
    /// Whether it may lean on the C library; what goes into an image alone may not.
    pub cgo: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Binary {
    pub name: &'static str,
    pub package: &'static str,
}

impl Module {
    /// All names under which programs of this module are called.
    pub(crate) fn programs(&self) -> impl Iterator<Item = &'static str> {
        self.binaries
            .iter()
            .map(|binary| binary.name)
            .chain(self.links.iter().copied())
    }

    pub(crate) fn makes(&self, program: &str) -> bool {
        self.programs().any(|name| name == program)
    }
}

macro_rules! files {
    ($folder:literal, $($file:literal),+) => {
        &[$(($file, include_str!(concat!("../../programs/", $folder, "/", $file)))),+]
    };
}

pub(crate) const COREDNS_VERSION: &str = "1.14.0";
pub(crate) const NATS_VERSION: &str = "2.15.2";
pub(crate) const JAEGER_VERSION: &str = "1.42.0";

pub(crate) const MODULES: &[Module] = &[
    Module {
        name: "kube",
        effort: "3 to 4 min on two cores",
        files: files!("kube", "go.mod", "go.sum", "main.go"),
        binaries: &[Binary {
            name: "kube",
            package: ".",
        }],
        links: &[
            "kube-apiserver",
            "kube-controller-manager",
            "kube-scheduler",
            "kube-proxy",
            "kubelet",
            "kubectl",
        ],
        // Without these the API server calls itself v0.0.0 and clients refuse to talk to it.
        link_flags: "-X k8s.io/component-base/version.gitVersion=v1.36.3 \
                     -X k8s.io/component-base/version.gitMajor=1 \
                     -X k8s.io/component-base/version.gitMinor=36 \
                     -X k8s.io/component-base/version.gitTreeState=clean",
        cgo: true,
    },
    Module {
        name: "containerd",
        effort: "1 min on two cores",
        files: files!("containerd", "go.mod", "go.sum"),
        binaries: &[
            Binary {
                name: "containerd",
                package: "github.com/containerd/containerd/v2/cmd/containerd",
            },
            Binary {
                name: "containerd-shim-runc-v2",
                package: "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2",
            },
            Binary {
                name: "ctr",
                package: "github.com/containerd/containerd/v2/cmd/ctr",
            },
        ],
        links: &[],
        link_flags: "",
        cgo: true,
    },
    Module {
        name: "etcd",
        effort: "20 s on two cores",
        files: files!("etcd", "go.mod", "go.sum"),
        binaries: &[Binary {
            name: "etcd",
            package: "go.etcd.io/etcd/server/v3",
        }],
        links: &[],
        link_flags: "",
        cgo: true,
    },
    Module {
        name: "crictl",
        effort: "20 s on two cores",
        files: files!("crictl", "go.mod", "go.sum"),
        binaries: &[Binary {
            name: "crictl",
            package: "sigs.k8s.io/cri-tools/cmd/crictl",
        }],
        links: &[],
        link_flags: "",
        cgo: true,
    },
    Module {
        name: "coredns",
        effort: "90 s on two cores",
        files: files!("coredns", "go.mod", "go.sum"),
        binaries: &[Binary {
            name: "coredns",
            package: "github.com/coredns/coredns",
        }],
        links: &[],
        link_flags: "",
        cgo: false,
    },
    Module {
        name: "nats-server",
        effort: "15 s on two cores",
        files: files!("nats-server", "go.mod", "go.sum"),
        binaries: &[Binary {
            name: "nats-server",
            package: "github.com/nats-io/nats-server/v2",
        }],
        links: &[],
        link_flags: "",
        cgo: false,
    },
    Module {
        name: "jaeger",
        effort: "40 s on two cores",
        files: files!("jaeger", "go.mod", "go.sum"),
        binaries: &[Binary {
            name: "jaeger",
            package: "github.com/jaegertracing/jaeger/cmd/all-in-one",
        }],
        links: &[],
        link_flags: "",
        cgo: false,
    },
];
