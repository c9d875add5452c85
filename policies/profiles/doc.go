// Package profiles holds the policy profiles: the embedded YAML files, one per
// published policy, and the strict parser that reads them and the user's own.
//
// A profile extends another ("default" where it does not say) and overrides some
// of its keys; the keys are those of default.yaml and simple.yaml. Every error
// names file, line and column. [Profile.Origins] remembers which profile each
// effective number comes from.
package profiles
