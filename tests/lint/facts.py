#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Each fact about Nova's driver that this agent follows has tests, or a decision with the reason. Each cited fact or decision is in doc/.

FACTS has a row for each fact of the sections C, G2 and G4 of doc/facts.md that concerns a host. It also has one for each of Nova's
scenarios of a reshape (F1, F3, F10). A row names the tests that would fail without the behaviour ("file test …"). For a row without tests,
doc/decisions must have an explanation with the id in brackets: "(facts C9)".
"""

import re

from sources import main

FACTS = {
    'C1 order: ratios come from the present root, traits of others stay':
        ['tests/unit/drivers/test-update.c test_root_table test_ratio_table test_root_ownership_c10'],
    'C2 MEMORY_MB': ['tests/unit/drivers/test-update.c test_root_table test_reserved_too_much',
                     'tests/unit/drivers/tree/test-cpu-plan.c test_memory_amounts_a4'],
    'C2 VCPU': ['tests/unit/drivers/test-update.c test_root_table'],
    'C2 PCPU': ['tests/unit/drivers/test-update.c test_root_table'],
    'C2 DISK_GB': ['tests/unit/drivers/test-update.c test_root_table',
                   'tests/integration/driver/test_host.py test_c2_disk_of_a_pool '
                   'test_c2_a_pool_that_is_not_started_or_not_there '
                   'test_c2_a_kind_of_images_that_needs_a_pool'],
    'C2 DISK_GB beside a sharing provider': ['tests/integration/claims/test_shared_storage.py test_local_disk_is_left_out_beside_a_sharing_provider'],
    'C2 CUSTOM_PMEM': [],
    'C2 image cache': [],
    'C2 ratios': ['tests/unit/drivers/test-update.c test_ratio_table',
                  'tests/integration/agent/test_agent.py test_an_operators_ratio_survives'],
    'C2 the root is the driver\'s': ['tests/unit/drivers/test-update.c test_root_ownership_c10'],
    'C3 sets': ['tests/unit/drivers/tree/test-cpu-plan.c test_sets_c3'],
    'C3 what is refused': ['tests/unit/drivers/tree/test-cpu-plan.c test_refusals_c3 '
                           'test_reserved_cpus_beside_pin_set_c3'],
    'C3 guests': ['tests/unit/drivers/test-verify.c test_table'],
    'C4 types of devices': ['tests/unit/drivers/tree/test-mdev-plan.c test_table test_path_of_device',
                            'tests/unit/config/test-config.c test_mdev_types',
                            'tests/integration/driver/test_devices.py test_c4_f4_a_type_for_each '
                            'test_c4_two_gpus_three_types test_c4_functions_that_become_vgpus'],
    'C4 totals': ['tests/unit/drivers/tree/test-mdev-plan.c test_table', 'tests/unit/drivers/tree/test-vgpu-cards.c test_c4_offers'],
    'C4 providers': ['tests/unit/drivers/test-update.c test_gpus test_adopt'],
    'C4 names of mdevs': ['tests/unit/drivers/libvirt/test-node-device.c test_mdev_names_g4_8'],
    'C5.1': ['tests/unit/drivers/test-update.c test_reshape_needed test_reshape test_reshape_table'],
    'C5.2': ['tests/unit/drivers/reshape/test-moves.c test_dedicated_cpus'],
    'C5.3': ['tests/unit/drivers/tree/test-memory-encryption.c test_reshape_c5_3'],
    'C5 renamed and regrouped, under guests':
        ['tests/integration/reshape/test_guests.py test_classes_there_and_back'],
    'C6': ['tests/unit/drivers/tree/test-memory-encryption.c test_models_c6 test_gone_without_its_trait_c6',
           'tests/integration/driver/test_host.py test_c6_models_come_and_go'],
    'C7 off': ['tests/unit/drivers/tree/test-pci-providers.c test_f5_cannot_be_switched_off',
               'tests/integration/driver/test_devices.py test_f5_disabled_reports_nothing '
               'test_f5_cannot_be_disabled_after_enabling'],
    'C7 what is refused': ['tests/unit/drivers/tree/test-pci-providers.c test_refused',
                           'tests/integration/driver/test_devices.py '
                           'test_f5_devname_is_refused_before_anything_starts '
                           'test_c7_refused_configurations_cost_one_card_only'],
    'C7 providers': ['tests/unit/drivers/tree/test-pci-providers.c test_new_host test_changes',
                     'tests/integration/driver/test_devices.py '
                     'test_f5_pf_with_64_vfs_and_a_pci_device'],
    'C7 names': ['tests/unit/drivers/host/test-pci-spec.c test_c7_names'],
    'C7 inventories': ['tests/unit/drivers/tree/test-pci-providers.c test_g2_18_keeps_what_an_operator_set',
                       'tests/integration/driver/test_devices.py test_f5_one_time_use'],
    'C7 what is in use stays': ['tests/integration/driver/test_devices.py '
                                'test_f5_g4_18_spec_of_a_device_in_use_removed '
                                'test_f5_spec_of_an_allocated_device_removed'],
    'C7 healing': [],
    'C8': ['tests/unit/drivers/tree/test-host-traits.c test_table_c8',
           'tests/integration/driver/test_nova_agrees.py test_uneven_host'],
    'C9': ['tests/unit/drivers/tree/test-numa-providers.c test_two_cells test_uneven_hosts'],
    'C10 root inventory, ratios': ['tests/unit/drivers/test-update.c test_root_ownership_c10 '
                                   'test_ratio_table'],
    'C10 inventories of children': ['tests/unit/drivers/test-update.c test_adopt',
                                    'tests/unit/drivers/tree/test-pci-providers.c '
                                    'test_g2_18_keeps_what_an_operator_set'],
    'C10 root traits': ['tests/unit/drivers/tree/test-host-traits.c test_ownership_c10'],
    'C10 traits of mdev and SEV providers': ['tests/unit/drivers/test-update.c test_adopt',
                                             'tests/unit/drivers/tree/test-memory-encryption.c test_ownership_c10'],
    'C10 traits of PCI providers': ['tests/unit/drivers/tree/test-pci-providers.c '
                                    'test_g2_18_keeps_what_an_operator_set'],
    'C10 aggregates': ['tests/unit/drivers/test-update.c test_root_ownership_c10 test_adopt'],
    'C10 others\' providers': ['tests/unit/drivers/test-update.c test_empty_gpu_with_foreign_child',
                               'tests/unit/drivers/tree/test-numa-providers.c test_foreign_providers_c10',
                               'tests/unit/drivers/tree/test-pci-providers.c test_c10_leaves_others_alone'],
    'C10 sharing providers': ['tests/unit/drivers/test-update.c test_foreign_providers_are_not_changed'],
    'F1 reshape: an error is told':
        ['tests/integration/report/test_reshape.py test_a_reshape_that_does_not_fit',
         'tests/integration/reshape/test_moves.py test_e6_no_capacity_elsewhere'],
    'F1 reshape: done, and a replay of it':
        ['tests/integration/report/test_reshape.py test_from_the_root_to_its_children '
         'test_f1_a_replay'],
    'F1 reshape: nothing twice, a class everywhere, collapse, expand':
        ['tests/integration/report/test_reshape.py test_f1_a_class_everywhere '
         'test_a_consumer_that_was_forgotten',
         'tests/integration/reshape/test_moves.py test_f1_collapse_onto_the_root_and_expand_again'],
    'F1 reshape: a conflict':
        ['tests/integration/report/test_reshape.py '
         'test_a_claim_between_gathering_and_publishing'],
    'F3 VGPU': ['tests/integration/reshape/test_reshape.py test_f3_from_the_root_to_the_gpus'],
    'F3 SEV': ['tests/integration/reshape/test_moves.py test_f3_memory_encryption_from_the_root'],
    'F3 SEV mixed': ['tests/integration/reshape/test_moves.py test_f3_sev_mixed'],
    'F3 PCPU': ['tests/integration/reshape/test_reshape.py '
                'test_c5_2_dedicated_cpus_there_and_back'],
    'F10 reshaper.yaml': ['tests/integration/reshape/test_moves.py test_e6_somebody_claims_meanwhile '
                          'test_e6_a_consumer_changes_meanwhile test_e6_a_consumer_goes_meanwhile '
                          'test_e6_a_provider_goes_meanwhile test_e6_the_class_goes_meanwhile '
                          'test_e6_no_capacity_elsewhere test_e6_no_room_for_one_elsewhere '
                          'test_e6_a_placement_that_refuses_the_reshaper'],
    'G2.5': ['tests/unit/drivers/test-update.c test_gone_g2_5'],
    'G2.6': ['tests/unit/drivers/tree/test-mdev-plan.c test_table', 'tests/unit/drivers/test-update.c '
             'test_class_by_type_g2_6', 'tests/integration/driver/test_devices.py '
             'test_g2_6_max_instances_never_below_what_exists test_g2_6_max_instances'],
    'G2.13': ['tests/unit/agent/tree/test-provider-yaml.c test_g2_13_bad_entries',
              'tests/unit/agent/tree/test-provider-merge.c test_g2_13_foreign_provider_in_the_second_cycle '
              'test_g2_13_what_leaves_the_file_leaves_placement',
              'tests/unit/agent/tree/test-provider-config.c test_g2_13_over_restarts',
              'tests/integration/driver/test_devices.py test_a12_g2_13_added_and_taken_back '
              'test_g2_13_a_provider_of_somebody_else'],
    'G2.18': ['tests/unit/drivers/tree/test-pci-providers.c test_g2_18_keeps_what_an_operator_set',
              'tests/integration/driver/test_devices.py test_g2_18_what_an_operator_set_survives'],
    'G4.7': ['tests/unit/drivers/test-update.c test_root_table', 'tests/unit/drivers/tree/test-mdev-plan.c test_table'],
    'G4.8': ['tests/unit/drivers/libvirt/test-node-device.c test_mdev_names_g4_8'],
    'G4.9': ['tests/unit/drivers/tree/test-mdev-plan.c test_table',
             'tests/integration/driver/test_devices.py test_g2_6_max_instances'],
    'G4.22': [],
    'I1': ['tests/integration/driver/test_trait_names.py test_names'],
    'I2': ['tests/integration/claims/test_placement_claims.py test_allocations_of_other_writers_stay '
           'test_a_scheduler_that_is_faster_leaves_the_rest'],
    'I3': ['tests/integration/reshape/test_moves.py test_e6_a_placement_that_refuses_the_reshaper'],
    'I4': ['tests/integration/driver/test_nova_agrees.py test_one_cell'],
    'I5': ['tests/integration/driver/test_trait_names.py test_names', 'tests/unit/drivers/host/test-pci-spec.c test_c7_names'],
    'I6': ['tests/unit/drivers/tree/test-memory-encryption.c test_models_c6'],
    'I7': ['tests/unit/claims/fit/test-device-choice.c test_choice'],
    'I8': ['tests/integration/driver/test_linux.py test_i8_tdx_is_told_by_neither',
           'tests/unit/drivers/libvirt/test-capabilities.c test_i8_tdx'],
}


def find_missing(texts):
    """Yields (fact, text) for each named test that does not exist."""
    for fact, references in FACTS.items():
        for reference in references:
            name, *tests = reference.split()
            for test in tests:
                if not re.search(r'^(static void| +def) %s\(' % test, texts.get(name, ''), re.M):
                    yield fact, '%s has no %s' % (name, test)


FACT_ID = re.compile(r'\*\*([A-I]\d+(?:\.\d+)?)\.?\*\*')
DECISION_ID = re.compile(r'^\* \*\*([a-z-]+)\.\*\*', re.M)
CITED = re.compile(r'\b(?:facts|fact) ((?:[A-I]\d+(?:\.\d+)?(?:, (?:and )?| and )?)+)')
CITED_DECISION = re.compile(r'\bdecisions? ((?:(?:,| and)? ?(?:claims|placement|reshape|devices|identity|operation)/[a-z-]+)+)')


def find_unknown(files, texts):
    """Yields the citations of unknown facts and decisions."""
    facts = set(FACT_ID.findall(texts.get('doc/facts.md', '')))
    decisions = {'%s/%s' % (name[len('doc/decisions/'):-3], found) for name, text in texts.items()
                 if name.startswith('doc/decisions/') for found in DECISION_ID.findall(text)}
    for file in files:
        for number, line in enumerate(file.lines, 1):
            for cited in CITED.findall(line):
                for fact in re.findall(r'[A-I]\d+(?:\.\d+)?', cited):
                    if fact not in facts:
                        yield file.name, number, 'facts %s do not stand in doc/facts.md' % fact
            for cited in CITED_DECISION.findall(line):
                for decision in re.findall(r'[a-z]+/[a-z-]+', cited):
                    if decision not in decisions:
                        yield file.name, number, 'decision %s does not stand in doc/decisions' % decision


def find_problems(root, files):
    if not (root / 'tests/lint/facts.py').exists():
        return  # not the tree of this project
    texts = {file.name: file.text for file in files}
    why = ''.join(text for name, text in texts.items() if name.startswith('doc/decisions/'))
    known = FACT_ID.findall(texts.get('doc/facts.md', ''))
    for fact, text in find_missing(texts):
        yield 'tests/lint/facts.py', 1, '%s: %s' % (fact, text)
    for fact, references in FACTS.items():
        if not references and '(facts %s)' % fact not in why:
            yield 'doc/decisions', 1, 'not a word on "(facts %s)", which no test covers' % fact
        if fact.split()[0] not in known:
            yield 'doc/facts.md', 1, 'no fact %s' % fact.split()[0]
    yield from find_unknown([file for file in files if not file.name.startswith('tests/lint/')], texts)


if __name__ == '__main__':
    main(find_problems)
