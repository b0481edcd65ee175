// SPDX-License-Identifier: LGPL-2.1-or-later

/* Converts the agent's documents (org.computeagent.Agent1(5)) to the content of the page. The functions are pure: they use neither the
 * DOM nor the bus nor the clock. A missing member counts as empty, because an older agent has fewer members. So does a missing document,
 * which can be unread yet, but it is no evidence that the host has no claims or no guests. Each text in a
 * result has passed plain(). Times are in microseconds since the epoch, and now is the current time.
 *
 * The result of a function is an object for one part of the page: a verdict, the host with its cells and devices, rows of a table, or
 * the words of a dialog. */

const SHOWN_MAX = 300; // characters of one name or message

/* Returns the visible form of a text from outside, of at most SHOWN_MAX characters. Characters without a shape, and those that change
 * the direction of text, become escape sequences. */
export function plain(text) {
    const seen = String(text ?? '').replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]/gu,
                                            c => '\\u' + c.codePointAt(0).toString(16).padStart(4, '0'));
    return seen.length > SHOWN_MAX ? seen.slice(0, SHOWN_MAX) + '…' : seen;
}

function list(value) {
    return Array.isArray(value) ? value : [];
}

/* Returns a size in KiB as text with a suitable unit, for example "1.5 GiB". */
export function size(kib) {
    const units = ['KiB', 'MiB', 'GiB', 'TiB'];
    let unit = 0;
    while (kib >= 1024 && unit < units.length - 1) {
        kib /= 1024;
        unit++;
    }
    return `${Math.round(kib * 10) / 10} ${units[unit]}`;
}

/* Returns an amount without the name of its class. */
function bare(resourceClass, n) {
    return resourceClass === 'MEMORY_MB' ? size(n * 1024) : String(n);
}

/* Returns a number with a noun: "1 consumer", "2 consumers". */
export function count(n, word) {
    return `${n} ${word}${n === 1 ? '' : 's'}`;
}

/* Returns the names of CPUs: "CPU 3", "CPUs 3-5". */
function cpuWords(numbers) {
    return `CPU${numbers.length === 1 ? '' : 's'} ${cpuText(numbers)}`;
}

/* Returns an amount with its class: "2 VCPU", "2 GiB memory". */
export function amount(resourceClass, n) {
    return `${bare(resourceClass, n)} ${resourceClass === 'MEMORY_MB' ? 'memory' : plain(resourceClass)}`;
}

export function amounts(resources) {
    return Object.keys(resources ?? {}).sort().map(name => amount(name, resources[name])).join(', ');
}

/* Returns a time relative to now: "5 min ago", "4 min left", "just now". 0 is "never". */
export function ago(usec, now) {
    if (!usec)
        return 'never';
    const seconds = Math.round(Math.abs(now - usec) / 1e6);
    if (seconds < 2)
        return 'just now';
    const [n, unit] = seconds < 120 ? [seconds, 's']
                      : seconds < 7200 ? [Math.round(seconds / 60), 'min']
                      : seconds < 172800 ? [Math.round(seconds / 3600), 'h']
                      : [Math.round(seconds / 86400), 'days'];
    return `${n} ${unit} ${usec > now ? 'left' : 'ago'}`;
}

/* Parses a list of CPUs: "0-2,8" becomes [0, 1, 2, 8]. Skips invalid parts, and limits the length of a range. */
export function cpus(text) {
    return String(text ?? '').split(',').flatMap(part => {
        const match = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(part.trim());
        if (!match)
            return [];
        const from = Number(match[1]), to = Math.min(Number(match[2] ?? from), from + 8192);
        return Array.from({ length: Math.max(0, to - from + 1) }, (_, i) => from + i);
    });
}

/* Returns CPUs as a list with ranges: [0, 1, 2, 8] becomes "0-2,8". */
export function cpuText(numbers) {
    const runs = [];
    for (const n of [...numbers].sort((a, b) => a - b)) {
        const last = runs.at(-1);
        if (last && n <= last[1] + 1)
            last[1] = n;
        else
            runs.push([n, n]);
    }
    return runs.map(([from, to]) => from === to ? `${from}` : `${from}-${to}`).join(',');
}

// ---- The verdict

const STATES = {
    ok: { mark: '✓', word: 'OK' },
    pending: { mark: '…', word: 'Pending' },
    warning: { mark: '!', word: 'Warning' },
    degraded: { mark: '✕', word: 'Degraded' },
};

const UNKNOWN = { mark: '?', word: 'Unknown' };

// Names of operations whose method has another name.
const OPERATIONS = { SyncFull: 'Full sync', GetReshape: 'Reshape, dry run', GetRetire: 'Retire, dry run', UndoReshape: 'Undo of the reshape' };

export function operation(method) {
    return OPERATIONS[method] ?? plain(method);
}

/* Returns {word, text}: the state of the service in systemd, and the reason why it does not run. text is '' after a normal stop. */
export function unit(properties) {
    const { ActiveState: active, Result: result, StatusText: status, ExecMainStatus: code } = properties ?? {};
    const exited = result === 'exit-code';
    return {
        word: active === 'failed' ? 'Failed' : active === 'activating' ? 'Starting' : 'Stopped',
        text: exited && String(status ?? '').startsWith('failed: ') ? plain(status)
              : active === 'failed' && exited ? `failed with exit code ${plain(code)}`
              : active === 'failed' ? `failed (${plain(result)})` : '',
    };
}

/* Returns the state of the host for the head of the page: {state, mark, word, node, summary, cordoned: the reason or '', standalone,
 * retired, reasons: [{state, mark, word, text, command, advice}], facts: [[name, value]]}. */
export function verdict(status, now) {
    const state = STATES[status?.state] ? status.state : 'unknown';
    return {
        state,
        ...(STATES[state] ?? UNKNOWN),
        node: plain(status?.node),
        summary: plain(status?.summary),
        cordoned: plain(status?.host_cordoned),
        standalone: status?.sync_state === 'standalone',
        retired: status?.sync_state === 'retired',
        reasons: list(status?.reasons).map(reason => ({
            state: STATES[reason.state] ? reason.state : 'unknown',
            ...(STATES[reason.state] ?? UNKNOWN),
            text: plain(reason.text || reason.summary),
            command: plain(reason.command),
            advice: plain(reason.advice),
        })),
        facts: [
            ['Sync', `${plain(status?.sync_state)}; last ${ago(status?.last_sync_usec, now)}`],
            ['Driver', `${plain(status?.driver)}; polled ${ago(status?.last_poll_usec, now)}`],
            ['Providers', plain(status?.n_providers)],
            ['Claims', plain(status?.n_claims)],
            ['Version', plain(status?.version)],
        ],
    };
}

// ---- The host

/* Returns the uuids of a claim's guest: its consumer, and the guest of a migration that took the claim over. */
function owners(claim) {
    return [claim.consumer, claim.of].filter(Boolean);
}

/* Returns the name of a claim in lists of holders. */
function label(claim) {
    return `#${claim.id} ${plain(claim.guest || claim.consumer)}`;
}

/* Returns the usage of each inventory of a provider. A cordon or a lost device can reserve all of an inventory that guests use; only
 * other usage above the capacity is an error (isOver). */
function inventories(provider) {
    const all = provider?.inventories ?? {};
    return Object.keys(all).sort().map(name => {
        const { used = 0, capacity = 0, total = 0, reserved = 0 } = all[name] ?? {};
        return {
            name: plain(name),
            used,
            capacity,
            share: capacity > 0 ? Math.min(1, used / capacity) : used > 0 ? 1 : 0,
            isOver: used > capacity && (capacity > 0 || reserved < total),
            text: capacity > 0 ? `${bare(name, used)} of ${bare(name, capacity)}` : `${bare(name, used)} in use`,
            note: reserved === 0 ? '' : reserved >= total ? `all ${bare(name, total)} reserved` : `${bare(name, reserved)} of ${bare(name, total)} reserved`,
        };
    });
}

/* Returns a map from each dedicated CPU to its claim. */
function cpuHolders(claims) {
    const holders = new Map();
    for (const claim of claims)
        for (const cpu of [...cpus(claim.held), ...list(claim.cpus).filter(one => one.dedicated).flatMap(one => cpus(one.cpus))])
            holders.set(cpu, claim);
    return holders;
}

/* Returns the claims that have a part of a device, and the guests that use it without a claim. */
function deviceHolders(device, provider, claims, host) {
    const held = [], seen = new Set();
    for (const claim of claims) {
        const parts = list(claim.devices).filter(one => (device && one.device === device.name) || (provider && one.provider === provider.uuid));
        const share = list(claim.allocations).find(one => one.provider === provider?.uuid);
        if (parts.length > 0 || share) {
            const what = parts.map(one => one.mdev).filter(Boolean).map(mdev => `mdev ${plain(mdev)}`);
            held.push({ claim: claim.id, text: label(claim), what: [amounts(share?.resources), ...what].filter(Boolean).join(', ') });
            owners(claim).forEach(one => seen.add(one));
        }
    }
    const mdevs = new Set(list(host?.mdevs).filter(one => device && one.parent === device.name).map(one => one.uuid));
    for (const domain of list(host?.domains)) {
        const has = list(domain.mdevs).some(one => mdevs.has(one)) || (device?.address && list(domain.pci_addresses).includes(device.address));
        if (has && !seen.has(domain.uuid))
            held.push({ claim: 0, text: plain(domain.name), what: 'a guest without a claim' });
    }
    return held;
}

const WITHHELD = {
    missing: { mark: '✕', word: 'missing' },
    held: { mark: '!', word: 'back, not offered yet' },
    unclean: { mark: '!', word: 'not clean, not offered yet' },
};

/* Returns one device of the page. device: its entry in the host document, or null. provider: its provider, or undefined if not offered. */
function makeDevice(device, provider, claims, host) {
    const address = device?.address || /_pci_([0-9a-f]{4,8})_([0-9a-f]{2})_([0-9a-f]{2})_([0-7])$/.exec(provider?.name ?? '')
        ?.slice(1).join(':').replace(/:(?=[0-7]$)/, '.');
    const tags = [];
    if (provider?.cordoned)
        tags.push({ state: 'warning', mark: '⊘', word: 'cordoned' });
    if (WITHHELD[provider?.withheld])
        tags.push({ state: 'degraded', ...WITHHELD[provider.withheld] });
    if (!provider)
        tags.push({ state: 'unknown', mark: '–', word: 'not offered' });
    return {
        key: provider?.uuid ?? device.name,
        provider: provider?.uuid ?? '',
        title: plain(address || device?.name || provider?.name),
        product: plain([device?.vendor, device?.product].filter(Boolean).join(' ') || provider?.name),
        cell: device && device.numa_node >= 0 ? device.numa_node : null,
        cordoned: Boolean(provider?.cordoned),
        tags,
        units: inventories(provider),
        holders: deviceHolders(device, provider, claims, host),
    };
}

/* Returns whether a device without provider is shown: GPUs and cards with mediated devices, but no bridges. */
function isInteresting(device) {
    return (device.class_code >> 16) === 3 || list(device.mdev_types).length > 0;
}

/* Returns the CPUs of a cell, grouped by core. online: a set of CPUs. holders: the result of cpuHolders(). */
function cores(cell, online, holders) {
    const byCore = new Map();
    for (const cpu of list(cell.cpus)) {
        const holder = holders.get(cpu.id), key = cpu.siblings || String(cpu.id);
        if (!byCore.has(key))
            byCore.set(key, []);
        byCore.get(key).push({
            id: cpu.id,
            claim: holder?.id ?? 0,
            state: holder ? 'held' : online.has(cpu.id) ? 'free' : 'off',
            text: `CPU ${cpu.id}: ${holder ? label(holder) : online.has(cpu.id) ? 'free or shared' : 'offline'}`,
        });
    }
    return [...byCore.values()];
}

/* Returns {facts, amounts, cells: [{id, text, amounts, cores, holders, devices}], devices: those outside of cells}. It matches cells and
 * devices with their providers by name, and shows each remaining provider as a device. */
export function host(document, tree, claimsDocument) {
    const claims = list(claimsDocument?.claims), providers = list(tree?.providers);
    const root = providers.find(one => one.uuid === tree?.root);
    const holders = cpuHolders(claims), online = new Set(cpus(document?.online_cpus));
    const left = new Map(providers.filter(one => one !== root).map(one => [one.name, one]));
    const take = name => {
        const provider = left.get(name);
        left.delete(name);
        return provider;
    };

    const cellProviders = new Map(list(document?.cells).map(cell => [cell.id, take(`${root?.name}_NUMA${cell.id}`)]));
    const devices = [];
    for (const device of list(document?.devices)) {
        const provider = take(`${root?.name}_${device.name}`) ?? (device.address ? take(`${root?.name}_${device.address.toUpperCase()}`) : undefined);
        if (provider || isInteresting(device))
            devices.push(makeDevice(device, provider, claims, document));
    }
    for (const provider of left.values())
        devices.push(makeDevice(null, provider, claims, document));
    devices.sort((a, b) => a.title < b.title ? -1 : a.title > b.title ? 1 : 0);

    const cells = list(document?.cells).map(cell => {
        const own = list(cell.cpus).map(cpu => cpu.id);
        const bound = claims.flatMap(claim => {
            const held = own.filter(cpu => holders.get(cpu) === claim);
            const memory = list(claim.cells).filter(one => one.host_cell === cell.id).reduce((sum, one) => sum + (one.memory_mb || 0), 0);
            const what = [held.length > 0 ? cpuWords(held) : '', memory > 0 ? `${size(memory * 1024)} memory` : ''];
            return held.length > 0 || memory > 0 ? [{ claim: claim.id, text: label(claim), what: what.filter(Boolean).join(', ') }] : [];
        });
        return {
            id: cell.id,
            text: `${count(own.length, 'CPU')}${own.length > 0 ? ` (${cpuText(own)})` : ''}, ${size(cell.memory_kib || 0)} memory`,
            amounts: inventories(cellProviders.get(cell.id)),
            cores: cores(cell, online, holders),
            holders: bound,
            devices: devices.filter(device => device.cell === cell.id),
        };
    });
    const inCells = new Set(cells.map(cell => cell.id));
    return {
        facts: document ? plain([document.arch, document.cpu_model, document.hypervisor].filter(Boolean).join(' ')) +
                          `, ${count(online.size, 'CPU')}, ${size(document.memory_kib || 0)} memory` : '',
        amounts: inventories(root),
        cells,
        devices: devices.filter(device => !inCells.has(device.cell)),
    };
}

// ---- Claims and guests

const CLAIM_STATES = { pending: 'waiting for Placement', claimed: 'waiting for its guest', confirmed: 'in use' };

function makeClaim(claim, problems, now) {
    const devices = list(claim.devices).map(one => plain(one.address || one.device));
    const held = cpus(claim.held), cells = list(claim.cells).map(one => one.host_cell);
    const total = {};
    for (const one of list(claim.allocations))
        for (const [name, n] of Object.entries(one.resources ?? {}))
            total[name] = (total[name] ?? 0) + n;
    return {
        id: claim.id,
        name: plain(claim.guest || claim.consumer),
        consumer: plain(claim.consumer),
        state: plain(claim.state),
        words: (CLAIM_STATES[claim.state] ?? plain(claim.state)) + (claim.resize_target ? ', resize target' : ''),
        holds: amounts(total),
        where: [
            devices.length > 0 ? devices.join(', ') : '',
            held.length > 0 ? cpuWords(held) : '',
            cells.length > 0 ? `cell ${[...new Set(cells)].join(', ')}` : '',
        ].filter(Boolean).join('; '),
        created: ago(claim.created_usec, now),
        expires: claim.expires_usec ? ago(claim.expires_usec, now) : '',
        problems: problems.filter(one => one.claim === claim.id || (one.consumer && one.consumer === claim.consumer)).map(one => plain(one.text)),
    };
}

/* Returns the claims whose row contains the text, at most max of them: {rows, n: number of all claims, nFound}. */
export function claims(document, problemsDocument, now, text = '', max = 100) {
    const all = list(document?.claims), problems = list(problemsDocument?.problems), wanted = text.trim().toLowerCase();
    const rows = all.map(claim => makeClaim(claim, problems, now)).filter(row =>
        !wanted || [`#${row.id}`, row.name, row.consumer, row.holds, row.where, row.words].join(' ').toLowerCase().includes(wanted));
    return { rows: rows.slice(0, max), n: all.length, nFound: rows.length };
}

/* Returns {n, words, names}: the number of claims that must end before the host is empty, and of guests that are on and have none. names
 * are those of the first ones. If a document is unread, words says what is not known. */
export function drain(document, hostDocument, max = 20) {
    if (!document)
        return { n: 0, words: 'The claims and guests of this host are not known yet.', names: [] };
    const claimed = list(document.claims);
    const unclaimed = guests(hostDocument, document).filter(one => one.claim === 0 && one.state !== 'shutoff');
    const n = claimed.length + unclaimed.length;
    return {
        n,
        words: n === 0 ? hostDocument ? '✓ No claims on this host.' : 'No claims on this host. Its guests are not known yet.'
               : (hostDocument ? '' : 'The guests of this host are not known yet. ')
                     + [count(claimed.length, 'claim'), ...unclaimed.length > 0 ? [`${count(unclaimed.length, 'guest')} without a claim`] : []]
                         .join(' and ') + ' on this host must move:',
        names: [...claimed.map(label), ...unclaimed.map(one => one.name)].slice(0, max),
    };
}

/* Returns the result of Retire or GetRetire: {isDone, isFree, holders: [], foreign: [], providers: []}. holders and foreign providers
 * prevent the retirement. providers are those that it removes. */
export function retire(document) {
    const holders = list(document?.holders).map(one => [
        plain(one.guest || one.consumer),
        one.claim ? `claim #${one.claim}` : '',
        one.placed ? 'has allocations in Placement' : one.claim ? '' : 'runs here',
    ].filter(Boolean).join(', '));
    const foreign = list(document?.foreign).map(plain);
    return {
        isDone: Boolean(document?.done),
        isFree: holders.length === 0 && foreign.length === 0,
        holders,
        foreign,
        providers: list(document?.providers).map(plain),
    };
}

/* Returns the latest events, at most max of them, the last one first. */
export function events(document, now, max = 100) {
    return list(document?.events).slice(0, max).map(event => ({
        id: event.id,
        when: ago(event.usec, now),
        event: plain(event.event),
        claim: event.claim ? `#${event.claim}` : '',
        name: plain(event.guest || event.consumer),
        what: list(event.allocations).map(one => amount(one.class, one.amount))
            .concat(list(event.devices).map(one => plain(one.address || one.device))).join(', '),
        author: plain(event.author) || 'the agent',
        reason: plain(event.reason),
    }));
}

/* Returns the guests of the hypervisor, each with the number of its claim, 0 without a claim, or null while the claims are not known.
 * lacks: it must have one and has none. With the hook, a guest that is off needs none. */
export function guests(hostDocument, claimsDocument, status) {
    const byOwner = new Map(list(claimsDocument?.claims).flatMap(claim => owners(claim).map(one => [one, claim.id])));
    return list(hostDocument?.domains).map(domain => ({
        key: plain(domain.uuid),
        name: plain(domain.name),
        state: plain(domain.state),
        has: `${domain.vcpus ?? 0} vCPU, ${size(domain.memory_kib ?? 0)}`,
        devices: list(domain.mdevs).length + list(domain.pci_addresses).length,
        claim: claimsDocument ? byOwner.get(domain.uuid) ?? 0 : null,
        lacks: Boolean(claimsDocument) && !byOwner.has(domain.uuid) && !(status?.hook && domain.state === 'shutoff'),
    }));
}

// ---- Differences from Placement

const REMEDIES = {
    none: 'no automatic repair; check the consumer',
    'release-share': 'heal removes its share of this host from Placement',
    'write-claim': 'heal writes the claim to Placement',
    adopt: 'heal creates a claim for the guest',
    'end-claim': 'heal ends the claim',
};

/* Returns {steps: [{request, name, summary}], words}. The requests can leave a difference, for example of the shape. So the words depend
 * on the sync state and its error, too. */
export function plan(document, status) {
    const steps = list(document).map(step => ({
        request: `${plain(step.method)} ${plain(step.path)}`,
        name: plain(step.name),
        summary: plain(step.summary),
    }));
    const error = plain(status?.sync_error);
    const state = `The sync state is ${plain(status?.sync_state) || 'unknown'}${error && `: ${error}`}.`;
    const isEqual = status?.sync_state === 'synced' || (status?.sync_state === 'left-to-nova' && !error);
    return {
        steps,
        words: steps.length > 0 ? `${count(steps.length, 'request')} to make Placement equal to this host${error && `. ${state}`}`
               : isEqual ? '✓ Nothing to send: Placement is equal to this host.'
               : `Nothing to send now. ${state}`,
    };
}

/* Returns {taken, words, holding, inFlight, findings: [{text, remedy, outcome, isOpen, isHealable}], nOpen, nHealable}, or null before
 * the first audit. A finding that only informs is not open. An audit without findings proves agreement only while the status of the
 * host is "ok". */
export function audit(document, status, now) {
    if (!document)
        return null;
    const findings = list(document.findings).map(one => ({
        text: plain(one.text) + (one.evidence ? `; evidence: ${plain(one.evidence)}` : ''),
        remedy: one.problem === false ? 'nothing to do' : REMEDIES[one.remedy] ?? plain(one.remedy),
        outcome: one.outcome === 'healed' ? 'healed' : one.outcome === 'failed' ? `failed: ${plain(one.error)}` : '',
        isOpen: one.outcome !== 'healed' && one.problem !== false,
        isHealable: one.remedy !== 'none' && one.outcome !== 'healed',
    }));
    const taken = ago(document.taken_usec, now), isCurrent = status?.state === 'ok';
    return {
        taken,
        words: findings.length > 0 ? `${findings.filter(one => one.isOpen).length} of ${count(findings.length, 'finding')} open; compared ${taken}.`
               : isCurrent ? `✓ Placement, claims and guests agree; compared ${taken}.`
               : `No difference was found ${taken}. See the reasons of the status above.`,
        holding: document.holding ?? 0,
        inFlight: document.in_flight ?? 0,
        findings,
        nOpen: findings.filter(one => one.isOpen).length,
        nHealable: findings.filter(one => one.isHealable).length,
    };
}

/* Returns the allocations of a consumer as a map from class and provider to {name, provider, n}. */
function flatten(consumer) {
    const parts = new Map();
    for (const [provider, one] of Object.entries(consumer?.allocations ?? {}))
        for (const [name, n] of Object.entries(one.resources ?? {}))
            parts.set(`${name} ${provider}`, { name, provider, n });
    return parts;
}

/* Returns the moves of a reshape: {moves: [{consumer, from: [], to: []}], problems: [{consumer, text}]}. Returns null without one. */
export function reshape(document) {
    if (!document)
        return null;
    const names = new Map([...list(document.before?.providers), ...list(document.after?.providers)].map(one => [one.uuid, one.name]));
    const words = part => `${amount(part.name, part.n)} of ${plain(names.get(part.provider) ?? part.provider)}`;
    const moves = Object.keys(document.after?.consumers ?? {}).sort().map(consumer => {
        const before = flatten(document.before?.consumers?.[consumer]), after = flatten(document.after.consumers[consumer]);
        const gone = (one, other) => [...one].filter(([key, part]) => other.get(key)?.n !== part.n).map(([, part]) => words(part));
        return { consumer: plain(consumer), from: gone(before, after), to: gone(after, before) };
    });
    const problems = list(document.problems).map(one => ({
        consumer: plain(one.consumer),
        text: `${plain(one.resource_class)}: ${plain(one.reason)}`,
    }));
    return { moves, problems };
}

// ---- Words for errors

/* Returns the message for an error of cockpit.dbus(). */
export function refusal(error) {
    const name = String(error?.name ?? ''), message = plain(error?.message || error?.problem || name);
    if (name.endsWith('.AccessDenied') || name.endsWith('.InteractiveAuthorizationRequired') || error?.problem === 'access-denied')
        return `Permission denied: ${message}. Turn on administrative access, or ask for a polkit rule (SECURITY.md of compute-agent).`;
    return message || 'The call failed without an error message.';
}
