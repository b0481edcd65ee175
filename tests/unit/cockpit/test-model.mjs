// SPDX-License-Identifier: LGPL-2.1-or-later

/* Tests of cockpit/model.js: "make check-cockpit". They need neither a browser nor an agent. Each value is compared as JSON, so an
 * undefined member is a missing one. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

// Node takes a file named ".js" for CommonJS. So the module is imported from its text.
const source = readFileSync(new URL('../../../cockpit/model.js', import.meta.url));
const { ago, amounts, audit, claims, count, cpuText, cpus, drain, events, guests, host, operation, plain, plan, refusal, reshape, retire,
        size, unit, verdict } = await import(`data:text/javascript;base64,${source.toString('base64')}`);

const ROOT = '00000000-0000-4000-8000-000000000000';
const GPU = '10000000-0000-4000-8000-000000000000';
const CELL = '20000000-0000-4000-8000-000000000000';
const GONE = '30000000-0000-4000-8000-000000000000';
const tree = {root: ROOT, providers: [
    {uuid: ROOT, name: 'h', inventories: {MEMORY_MB: {total: 4096, reserved: 512, capacity: 3584, used: 1024},
                                          VCPU: {total: 4, capacity: 4, used: 6}}},
    {uuid: GPU, name: 'h_pci_0000_41_00_0', cordoned: true, withheld: '',
     inventories: {VGPU: {total: 4, reserved: 4, capacity: 0, used: 1}}},
    {uuid: CELL, name: 'h_NUMA1', inventories: {PCPU: {total: 2, capacity: 2, used: 1}}},
    {uuid: GONE, name: 'h_pci_0000_81_00_0', withheld: 'missing', inventories: {}}]};
const hostDocument = {
    arch: 'x86_64', online_cpus: '0-2', memory_kib: 4194304,
    cells: [{id: 1, memory_kib: 4194304, cpus: [0, 1, 2, 3].map(id => ({id, siblings: id < 2 ? '0-1' : '2-3'}))}],
    devices: [{name: 'pci_0000_41_00_0', address: '0000:41:00.0', numa_node: 1, class_code: 0x30200},
              {name: 'pci_0000_00_1f_0', address: '0000:00:1f.0', numa_node: -1, class_code: 0x60100}],
    mdevs: [{uuid: 'm1', parent: 'pci_0000_41_00_0'}, {uuid: 'm2', parent: 'pci_0000_41_00_0'}],
    domains: [{uuid: 'g1', name: 'web', state: 'running', vcpus: 1, memory_kib: 1048576, mdevs: ['m1']},
              {uuid: 'g2', name: 'db', state: 'shutoff', vcpus: 2, memory_kib: 2048, mdevs: ['m2']}]};
const claimsDocument = {claims: [{
    id: 7, consumer: 'g1', guest: 'web', state: 'confirmed', created_usec: 1, held: '1', cells: [{host_cell: 1, memory_mb: 1024}],
    cpus: [{vcpu: 0, dedicated: true, cpus: '1'}],
    allocations: [{provider: ROOT, resources: {MEMORY_MB: 1024}}, {provider: GPU, resources: {VGPU: 1}}],
    devices: [{device: 'pci_0000_41_00_0', address: '0000:41:00.0', provider: GPU, mdev: 'm1'}]}]};
const moved = {
    before: {providers: [{uuid: 'a', name: 'old'}], consumers: {c: {allocations: {a: {resources: {VCPU: 1, VGPU: 1}}}}}},
    after: {providers: [{uuid: 'b', name: 'new'}],
            consumers: {c: {allocations: {a: {resources: {VCPU: 1}}, b: {resources: {VGPU: 1}}}}}},
    problems: [{consumer: 'd', resource_class: 'VGPU', reason: 'no mdev'}]};
const picture = host(hostDocument, tree, claimsDocument);

function cases(name, rows) {
    test(name, () => {
        for (const [call, wanted] of rows)
            assert.deepEqual(JSON.parse(JSON.stringify(call())), wanted, String(call));
    });
}

cases('plain() escapes invisible characters and shortens long texts', [
    [() => plain('a\u202eb\u200b\n<i>'), 'a\\u202eb\\u200b\\u000a<i>'],
    [() => plain(undefined) + plain('x'.repeat(999)).length, '301'],
]);

cases('size() chooses the unit', [
    [() => [size(512), size(1024), size(1610612736)], ['512 KiB', '1 MiB', '1.5 TiB']],
]);

cases('amounts() lists the resource classes', [
    [() => amounts({VGPU: 1, MEMORY_MB: 2048}), '2 GiB memory, 1 VGPU'],
]);

cases('ago() describes past and future times', [
    [() => [ago(0, 9e6), ago(9e6, 9e6), ago(1e6, 61e6), ago(7260e6, 60e6), ago(1, 864e9)],
     ['never', 'just now', '60 s ago', '2 h left', '10 days ago']],
]);

cases('cpus() ignores invalid parts of a list and limits it', [
    [() => [cpus('0-2,8'), cpus('8-,x,-1'), cpus(''), cpus('1-99999').length, cpuText([8, 1, 0, 2])],
     [[0, 1, 2, 8], [], [], 8193, '0-2,8']],
]);

cases('verdict() translates each state and keeps the reasons', [
    [() => [verdict(null, 0).word, verdict({state: 'ok'}, 0).word, verdict({state: '<x>'}, 0).state], ['Unknown', 'OK', 'unknown']],
    [() => verdict({state: 'degraded', reasons: [{state: 'warning', text: 't', command: 'c'}]}, 0).reasons
         .map(one => [one.word, one.text, one.command]),
     [['Warning', 't', 'c']]],
]);

cases('unit() shows the state of the service and the reason of a failure', [
    [() => Object.values(unit(null)), ['Stopped', '']],
    [() => Object.values(unit({ActiveState: 'failed', Result: 'exit-code', StatusText: 'failed: x.conf:3: <b>', ExecMainStatus: 78})),
     ['Failed', 'failed: x.conf:3: <b>']],
    [() => Object.values(unit({ActiveState: 'activating', Result: 'exit-code', StatusText: 'failed: no room'})),
     ['Starting', 'failed: no room']],
    [() => Object.values(unit({ActiveState: 'failed', Result: 'watchdog'})), ['Failed', 'failed (watchdog)']],
    [() => Object.values(unit({ActiveState: 'failed', Result: 'exit-code', StatusText: 'ready', ExecMainStatus: 1})),
     ['Failed', 'failed with exit code 1']],
    [() => Object.values(unit({ActiveState: 'inactive', Result: 'success'})), ['Stopped', '']],
]);

cases('operation() names the D-Bus methods', [
    [() => [operation('GetRetire'), operation('Sync'), operation('a\u202e')], ['Retire, dry run', 'Sync', 'a\\u202e']],
]);

cases('host() accepts missing and malformed documents', [
    [() => host(null, null, null), {facts: '', amounts: [], cells: [], devices: []}],
    [() => host({cells: 'x', devices: {}}, {providers: 3}, {claims: null}).cells, []],
    [() => host({online_cpus: '3', memory_kib: 1024, cells: [{id: 0, cpus: [{id: 3}]}]}, null, null).cells[0].text,
     '1 CPU (3), 0 KiB memory'],
]);

cases('host() shows amounts, cells, CPUs and devices with their claims', [
    [() => picture.amounts.map(one => [one.name, one.share, one.isOver, one.text, one.note]),
     [['MEMORY_MB', 1024 / 3584, false, '1 GiB of 3.5 GiB', '512 MiB of 4 GiB reserved'], ['VCPU', 1, true, '6 of 4', '']]],
    [() => picture.cells.map(one => [one.id, one.text, one.amounts[0].text, one.holders]),
     [[1, '4 CPUs (0-3), 4 GiB memory', '1 of 2', [{claim: 7, text: '#7 web', what: 'CPU 1, 1 GiB memory'}]]]],
    [() => picture.cells[0].cores.map(core => core.map(cpu => [cpu.id, cpu.claim, cpu.state])),
     [[[0, 0, 'free'], [1, 7, 'held']], [[2, 0, 'free'], [3, 0, 'off']]]],
    [() => picture.cells[0].devices.map(one => [one.title, one.cordoned, one.tags[0].word, one.units[0].isOver, one.holders]),
     [['0000:41:00.0', true, 'cordoned', false, [{claim: 7, text: '#7 web', what: '1 VGPU, mdev m1'},
                                                 {claim: 0, text: 'db', what: 'a guest without a claim'}]]]],
    [() => picture.cells[0].devices[0].units.map(one => [one.text, one.note]), [['1 in use', 'all 4 reserved']]],
    [() => picture.devices.map(one => [one.title, one.tags[0].word, one.cell]), [['0000:81:00.0', 'missing', null]]],
]);

cases('count() uses the plural except for one', [
    [() => [count(0, 'consumer'), count(1, 'consumer'), count(2, 'consumer')], ['0 consumers', '1 consumer', '2 consumers']],
]);

const no_difference = 'No difference was found 60 s ago. See the reasons of the status above.';
cases('audit() counts open and healable findings', [
    [() => audit({taken_usec: 1e6, findings: []}, {state: 'ok'}, 61e6).words,
     '✓ Placement, claims and guests agree; compared 60 s ago.'],
    [() => audit({taken_usec: 1e6, findings: []}, {state: 'warning'}, 61e6).words, no_difference],
    [() => audit({taken_usec: 1e6, findings: []}, null, 61e6).words, no_difference],
    [() => audit({taken_usec: 1e6, findings: [{remedy: 'adopt', outcome: 'found'}]}, {state: 'ok'}, 61e6).words,
     '1 of 1 finding open; compared 60 s ago.'],
    [() => audit(null, null, 0), null],
    [() => audit({findings: [{remedy: 'adopt', outcome: 'found'}, {remedy: 'none', outcome: 'failed', error: 'e'}]}, null, 0).nHealable, 1],
]);

cases('claims() finds claims by text and limits the rows', [
    [() => claims(claimsDocument, {problems: [{claim: 7, text: 'p'}]}, 5e6).rows
         .map(one => [one.holds, one.where, one.words, one.problems]),
     [['1 GiB memory, 1 VGPU', '0000:41:00.0; CPU 1; cell 1', 'in use', ['p']]]],
    [() => claims(claimsDocument, null, 0, 'WEB').nFound, 1],
    [() => claims(claimsDocument, null, 0, 'none').nFound, 0],
    [() => claims(claimsDocument, null, 0, '', 0).rows, []],
]);

const running = {domains: ['running', 'paused', 'shutoff'].map((state, i) => ({uuid: `r${i}`, name: state, state}))};
cases('drain() counts and names the claims, and the guests without one', [
    [() => [drain(null, null), drain(null, running)],
     Array(2).fill({n: 0, words: 'The claims and guests of this host are not known yet.', names: []})],
    [() => drain({claims: []}, null), {n: 0, words: 'No claims on this host. Its guests are not known yet.', names: []}],
    [() => drain(claimsDocument, null), {n: 1, words: 'The guests of this host are not known yet. 1 claim on this host must move:', names: ['#7 web']}],
    [() => drain({claims: []}, {domains: []}), {n: 0, words: '✓ No claims on this host.', names: []}],
    [() => drain(claimsDocument, {}), {n: 1, words: '1 claim on this host must move:', names: ['#7 web']}],
    [() => drain(claimsDocument, hostDocument).n, 1],
    [() => drain(claimsDocument, running),
     {n: 3, words: '1 claim and 2 guests without a claim on this host must move:', names: ['#7 web', 'running', 'paused']}],
    [() => drain({claims: [{id: 1, consumer: 'm', of: 'r0'}, {id: 2, consumer: 'r1'}]}, running, 1),
     {n: 2, words: '2 claims on this host must move:', names: ['#1 m']}],
]);

cases('events() describes an event', [
    [() => events({events: [{id: 1, event: 'released', claim: 7, consumer: 'c',
                             allocations: [{name: 'h', class: 'VCPU', amount: 2}], reason: 'r'}]}, 0)[0],
     {id: 1, when: 'never', event: 'released', claim: '#7', name: 'c', what: '2 VCPU', author: 'the agent', reason: 'r'}],
]);

const migrating = {claims: [{...claimsDocument.claims[0], consumer: 'migration', of: 'g1'}]};
cases('a guest has the claim that a migration took over', [
    [() => guests(hostDocument, migrating).map(one => one.claim), [7, 0]],
    [() => host(hostDocument, tree, migrating).cells[0].devices[0].holders.map(one => [one.claim, one.text]), [[7, '#7 web'], [0, 'db']]],
]);

cases('guests() shows the claim of each guest', [
    [() => guests(hostDocument, claimsDocument).map(one => one.lacks), [false, true]],
    // With the hook, a guest that is off has no claim.
    [() => guests(hostDocument, claimsDocument, {hook: 'allow'}).map(one => one.lacks), [false, false]],
    [() => guests(hostDocument, {}, {hook: 'deny'}).map(one => one.lacks), [true, false]],
    [() => guests(hostDocument, {}, {hook: ''}).map(one => one.lacks), [true, true]],
    // While the claims are not read, no guest is known to lack one.
    [() => guests(hostDocument, null).map(one => [one.claim, one.lacks]), [[null, false], [null, false]]],
    [() => guests(hostDocument, claimsDocument).map(one => [one.name, one.has, one.devices, one.claim]),
     [['web', '1 vCPU, 1 GiB', 1, 7], ['db', '2 vCPU, 2 MiB', 1, 0]]],
]);

const request = {method: 'PUT', path: '/traits/X', summary: 's'};
const nothing_left = '✓ Nothing to send: Placement is equal to this host.';
cases('plan() describes the requests to Placement', [
    [() => plan(null, null).steps, []],
    [() => plan(null, null).words, 'Nothing to send now. The sync state is unknown.'],
    [() => plan([request], null).words, '1 request to make Placement equal to this host'],
    [() => plan([request], {sync_state: 'synced'}).steps[0].request, 'PUT /traits/X'],
    [() => ['synced', 'left-to-nova', 'offline', 'pending', 'retired'].map(state => plan([], {sync_state: state}).words),
     [nothing_left, nothing_left, ...['offline', 'pending', 'retired'].map(state => `Nothing to send now. The sync state is ${state}.`)]],
    [() => plan([], {sync_state: 'left-to-nova', sync_error: 'another shape'}).words,
     'Nothing to send now. The sync state is left-to-nova: another shape.'],
    [() => plan([request], {sync_state: 'left-to-nova', sync_error: 'another shape'}).words,
     '1 request to make Placement equal to this host. The sync state is left-to-nova: another shape.'],
]);

cases('reshape() lists moves and problems', [
    [() => reshape(null), null],
    [() => reshape(moved), {moves: [{consumer: 'c', from: ['1 VGPU of old'], to: ['1 VGPU of new']}],
                            problems: [{consumer: 'd', text: 'VGPU: no mdev'}]}],
]);

cases('retire() lists holders and foreign resources', [
    [() => retire(null).isFree, true],
    [() => retire({done: true, providers: ['h']}), {isDone: true, isFree: true, holders: [], foreign: [], providers: ['h']}],
    [() => retire({holders: [{guest: 'web', consumer: 'c', claim: 7, placed: true}, {guest: '', consumer: 'd', claim: 0, placed: false}],
                   foreign: ['sw\u202e'], providers: []}),
     {isDone: false, isFree: false, holders: ['web, claim #7, has allocations in Placement', 'd, runs here'], foreign: ['sw\\u202e'],
      providers: []}],
]);

cases('refusal() explains why a call failed', [
    [() => [refusal({problem: 'not-found'}), refusal({name: 'a.Error.Busy', message: 'later'})], ['not-found', 'later']],
    [() => refusal({name: 'org.freedesktop.DBus.Error.AccessDenied', message: 'Access denied'})
         .startsWith('Permission denied: Access denied.'), true],
]);
