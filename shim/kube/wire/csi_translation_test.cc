#include "shim/kube/wire/csi_translation.h"

#include <google/protobuf/text_format.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <string>

namespace outboard::kube {
namespace {

template <typename Message>
Message Parse(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

// Checks the translation of a volume with the given source and other fields.
void ExpectVolume(const std::string& source, const std::string& given,
                  const std::string& expected) {
  SCOPED_TRACE(source + given);
  wire::PersistentVolume from;
  *from.mutable_spec()->mutable_persistentvolumesource() =
      Parse<wire::PersistentVolumeSource>(source);
  from.mutable_metadata()->set_name("pv");
  auto volume = Parse<v1beta1::PersistentVolume>(given);
  auto wanted = Parse<v1beta1::PersistentVolume>(given + expected);
  TranslateVolume(from, &volume);
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(volume, wanted))
      << volume.DebugString();
}

std::string InlineHandle(const std::string& source) {
  wire::Volume from;
  from.set_name("v");
  *from.mutable_volumesource() = Parse<wire::VolumeSource>(source);
  v1beta1::Volume volume;
  TranslateInlineVolume(from, "ns", &volume);
  if (!volume.has_migrated()) return "none";
  return volume.migrated().in_tree_plugin() + " " + volume.migrated().driver() + " " +
         volume.migrated().volume_handle();
}

std::string Affinity(const std::string& key, const std::string& values) {
  return "{ node_selector_terms { match_expressions { key: '" + key + "' operator: OPERATOR_IN " +
         values + " } } }";
}

TEST(CsiTranslation, InlineVolumes) {
  EXPECT_EQ(InlineHandle("awsElasticBlockStore { volumeID: 'vol-1' }"),
            "kubernetes.io/aws-ebs ebs.csi.aws.com vol-1");
  EXPECT_EQ(InlineHandle("awsElasticBlockStore { volumeID: 'aws://us-east-1a/vol-1' }"),
            "kubernetes.io/aws-ebs ebs.csi.aws.com vol-1");
  EXPECT_EQ(InlineHandle("awsElasticBlockStore { volumeID: 'aws:///vol-1/' }"),
            "kubernetes.io/aws-ebs ebs.csi.aws.com vol-1");
  EXPECT_EQ(InlineHandle("awsElasticBlockStore { volumeID: 'aws://us-east-1a/disk' }"), "none");
  EXPECT_EQ(InlineHandle("awsElasticBlockStore { volumeID: 'aws://vol-1' }"), "none");
  EXPECT_EQ(InlineHandle("gcePersistentDisk { pdName: 'd' }"),
            "kubernetes.io/gce-pd pd.csi.storage.gke.io "
            "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d");
  EXPECT_EQ(InlineHandle("cinder { volumeID: 'c' }"),
            "kubernetes.io/cinder cinder.csi.openstack.org c");
  EXPECT_EQ(InlineHandle("azureDisk { diskURI: '/disks/x' kind: 'managed' }"),
            "kubernetes.io/azure-disk disk.csi.azure.com /disks/x");
  EXPECT_EQ(InlineHandle("azureDisk { diskURI: '/disks/x' kind: 'Shared' }"), "none");
  EXPECT_EQ(InlineHandle("azureFile { secretName: 'azure-storage-account-me-secret' "
                         "shareName: 's' }"),
            "kubernetes.io/azure-file file.csi.azure.com #me#s#v#ns");
  EXPECT_EQ(InlineHandle("azureFile { secretName: 'mine' shareName: 's' }"),
            "kubernetes.io/azure-file file.csi.azure.com #mine#s#v#ns");
  EXPECT_EQ(InlineHandle("vsphereVolume { volumePath: '[ds] v.vmdk' }"),
            "kubernetes.io/vsphere-volume csi.vsphere.vmware.com [ds] v.vmdk");
  EXPECT_EQ(InlineHandle("portworxVolume { volumeID: 'p' }"),
            "kubernetes.io/portworx-volume pxd.portworx.com p");
  EXPECT_EQ(InlineHandle("emptyDir {}"), "none");
}

constexpr char kEbs[] =
    "csi { driver: 'ebs.csi.aws.com' volume_handle: 'vol-1' in_tree_plugin: "
    "'kubernetes.io/aws-ebs' }";

TEST(CsiTranslation, ZonesOfAnAffinity) {
  const std::string source = "awsElasticBlockStore { volumeID: 'vol-1' }";
  ExpectVolume(source, "", kEbs);
  ExpectVolume(
      source, "node_affinity " + Affinity("topology.kubernetes.io/zone", "values: 'a' values: 'b'"),
      kEbs + (" migrated_node_affinity " +
              Affinity("topology.ebs.csi.aws.com/zone", "values: 'a' values: 'b'")));
  // A node affinity takes precedence over labels.
  ExpectVolume(source,
               "labels { key: 'topology.kubernetes.io/zone' value: 'x' } node_affinity " +
                   Affinity("failure-domain.beta.kubernetes.io/zone", "values: 'a'"),
               kEbs + (" migrated_node_affinity " +
                       Affinity("topology.ebs.csi.aws.com/zone", "values: 'a'")));
  // Old region labels are renamed only next to old zone labels.
  ExpectVolume(
      source,
      "node_affinity { node_selector_terms {"
      " match_expressions { key: 'failure-domain.beta.kubernetes.io/zone' operator: OPERATOR_IN "
      "values: 'a' "
      "}"
      " match_expressions { key: 'failure-domain.beta.kubernetes.io/region' operator: OPERATOR_IN"
      " values: 'r' } } }",
      std::string(kEbs) +
          " migrated_node_affinity { node_selector_terms {"
          " match_expressions { key: 'topology.ebs.csi.aws.com/zone' operator: OPERATOR_IN values: "
          "'a' }"
          " match_expressions { key: 'topology.kubernetes.io/region' operator: OPERATOR_IN values: "
          "'r' }"
          " } }");
  // Other keys stay unchanged.
  ExpectVolume(source, "node_affinity " + Affinity("rack", "values: 'a'"),
               kEbs + (" migrated_node_affinity " + Affinity("rack", "values: 'a'")));
}

TEST(CsiTranslation, ZonesOfLabels) {
  const std::string source = "awsElasticBlockStore { volumeID: 'vol-1' }";
  ExpectVolume(source, "labels { key: 'topology.kubernetes.io/zone' value: 'b__ a__b' }",
               kEbs + (" migrated_node_affinity " +
                       Affinity("topology.ebs.csi.aws.com/zone", "values: 'a' values: 'b'")));
  ExpectVolume(source, "labels { key: 'failure-domain.beta.kubernetes.io/zone' value: 'a' }",
               kEbs + (" migrated_node_affinity " +
                       Affinity("topology.ebs.csi.aws.com/zone", "values: 'a'")));
  ExpectVolume(source, "labels { key: 'topology.kubernetes.io/zone' value: ' ' }", kEbs);
  ExpectVolume(source,
               "labels { key: 'topology.kubernetes.io/zone' value: 'a' } node_affinity " +
                   Affinity("rack", "values: 'r'"),
               std::string(kEbs) +
                   " migrated_node_affinity { node_selector_terms {"
                   " match_expressions { key: 'rack' operator: OPERATOR_IN values: 'r' }"
                   " match_expressions { key: 'topology.ebs.csi.aws.com/zone' operator: "
                   "OPERATOR_IN values: 'a' }"
                   " } }");
}

TEST(CsiTranslation, TheHandleOfAGceDisk) {
  const std::string source = "gcePersistentDisk { pdName: 'd' }";
  auto csi = [](const std::string& handle) {
    return "csi { driver: 'pd.csi.storage.gke.io' in_tree_plugin: 'kubernetes.io/gce-pd' "
           "volume_handle: '" +
           handle + "' }";
  };
  ExpectVolume(source, "", csi("projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d"));
  ExpectVolume(source, "labels { key: 'topology.kubernetes.io/zone' value: 'us-east1-b' }",
               csi("projects/UNSPECIFIED/zones/us-east1-b/disks/d") + " migrated_node_affinity " +
                   Affinity("topology.gke.io/zone", "values: 'us-east1-b'"));
  ExpectVolume(
      source,
      "labels { key: 'failure-domain.beta.kubernetes.io/zone' value: 'us-east1-b__us-east1-c' }",
      csi("projects/UNSPECIFIED/regions/us-east1/disks/d") + " migrated_node_affinity " +
          Affinity("topology.gke.io/zone", "values: 'us-east1-b' values: 'us-east1-c'"));
  // Kubernetes cannot translate zones of two regions, or texts that are not zones.
  ExpectVolume(source,
               "labels { key: 'topology.kubernetes.io/zone' value: 'us-east1-b__eu-west1-c' }", "");
  ExpectVolume(source, "labels { key: 'topology.kubernetes.io/zone' value: 'here__there' }", "");
}

TEST(CsiTranslation, VSphereHasRegionsOfItsOwn) {
  const std::string csi =
      "csi { driver: 'csi.vsphere.vmware.com' volume_handle: 'v' in_tree_plugin: "
      "'kubernetes.io/vsphere-volume' }";
  ExpectVolume("vsphereVolume { volumePath: 'v' }",
               "labels { key: 'topology.kubernetes.io/zone' value: 'a__b' }"
               "labels { key: 'topology.kubernetes.io/region' value: 'r' }",
               csi +
                   " migrated_node_affinity { node_selector_terms {"
                   " match_expressions { key: 'topology.csi.vmware.com/zone' operator: OPERATOR_IN "
                   "values: 'a__b' }"
                   " match_expressions { key: 'topology.csi.vmware.com/region' operator: "
                   "OPERATOR_IN values: 'r' }"
                   " } }");
}

TEST(CsiTranslation, OthersKeepTheirAffinity) {
  const std::string given =
      "labels { key: 'topology.kubernetes.io/zone' value: 'a' } node_affinity " +
      Affinity("topology.kubernetes.io/zone", "values: 'a'");
  const std::string same =
      " migrated_node_affinity " + Affinity("topology.kubernetes.io/zone", "values: 'a'");
  ExpectVolume("portworxVolume { volumeID: 'p' }", given,
               "csi { driver: 'pxd.portworx.com' volume_handle: 'p' in_tree_plugin: "
               "'kubernetes.io/portworx-volume' }" +
                   same);
  ExpectVolume("azureDisk { diskURI: 'u' kind: 'Managed' }", given,
               "csi { driver: 'disk.csi.azure.com' volume_handle: 'u' in_tree_plugin: "
               "'kubernetes.io/azure-disk' }" +
                   same);
  ExpectVolume("azureFile { secretName: 's' shareName: 'f' secretNamespace: 'n' }", given,
               "csi { driver: 'file.csi.azure.com' volume_handle: '#s#f#pv#n' in_tree_plugin: "
               "'kubernetes.io/azure-file' }" +
                   same);
  ExpectVolume("azureFile { secretName: 's' shareName: 'f' }", given, "");
  ExpectVolume("csi { driver: 'd' volumeHandle: 'h' }", given, "");
}

}  // namespace
}  // namespace outboard::kube
