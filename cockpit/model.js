// SPDX-License-Identifier: LGPL-2.1-or-later

/* From the agent's documents (org.computeagent.Agent1(5)) to what the page shows. Pure: it knows neither the DOM nor the bus nor the
 * clock. What a document lacks is taken for empty: members are added over time, and a document may not be there yet. All text of the
 * answer went through plain(). */

const SHOWN_MAX = 300; // characters of one name or message

/* What can be seen of a foreign text: characters that have no shape, or turn the order of others around, are written out. */
export function plain(text) {
    const seen = String(text ?? '').replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]/gu,
                                            c => '\\u' + c.codePointAt(0).toString(16).padStart(4, '0'));
    return seen.length > SHOWN_MAX ? seen.slice(0, SHOWN_MAX) + '…' : seen;
}

function list(value) {
    return Array.isArray(value) ? value : [];
}

export function size(kib) {
    const units = ['KiB', 'MiB', 'GiB', 'TiB'];
    let unit = 0;
    while (kib >= 1024 && unit < units.length - 1) {
        kib /= 1024;
        unit++;
    }
    return `${Math.round(kib * 10) / 10} ${units[unit]}`;
}

function bare(resourceClass, n) {
    return resourceClass === 'MEMORY_MB' ? size(n * 1024) : String(n);
}

/* "1 consumer", "2 consumers" */
export function count(n, word) {
    return `${n} ${word}${n === 1 ? '' : 's'}`;
}

/* "CPU 3", "CPUs 3-5" */
function cpuWords(numbers) {
    return `CPU${numbers.length === 1 ? '' : 's'} ${cpuText(numbers)}`;
}

/* "2 VCPU", "2 GiB memory" */
export function amount(resourceClass, n) {
    return `${bare(resourceClass, n)} ${resourceClass === 'MEMORY_MB' ? 'memory' : plain(resourceClass)}`;
}

export function amounts(resources) {
    return Object.keys(resources ?? {}).sort().map(name => amount(name, resources[name])).join(', ');
}

/* "5 min ago", "4 min left", "just now", "never" */
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

/* "0-2,8" -> [0, 1, 2, 8] */
export function cpus(text) {
    return String(text ?? '').split(',').flatMap(part => {
        const match = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(part.trim());
        if (!match)
            return [];
        const from = Number(match[1]), to = Math.min(Number(match[2] ?? from), from + 8192);
        return Array.from({ length: Math.max(0, to - from + 1) }, (_, i) => from + i);
    });
}

/* [0, 1, 2, 8] -> "0-2,8" */
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

// What a method of the agent does, where its name does not say it.
const OPERATIONS = { SyncFull: 'Full sync', GetReshape: 'Reshape, dry run', GetRetire: 'Retire, dry run', UndoReshape: 'Undo of the reshape' };

export function operation(method) {
    return OPERATIONS[method] ?? plain(method);
}

/* {state, mark, word, summary, reasons: [{mark, word, text, command, advice}], facts: [[name, value]], cordoned} */
/* {word, text}: the state of the service in systemd, and why it does not run; text is '' if it was only stopped. */
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

/* What a claim is called where it holds something. */
function label(claim) {
    return `#${claim.id} ${plain(claim.guest || claim.consumer)}`;
}

/* What guests have of an inventory. All of it can be reserved while guests have a part, because of a cordon or a lost device. */
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

function cpuHolders(claims) {
    const holders = new Map();
    for (const claim of claims)
        for (const cpu of [...cpus(claim.held), ...list(claim.cpus).filter(one => one.dedicated).flatMap(one => cpus(one.cpus))])
            holders.set(cpu, claim);
    return holders;
}

/* Claims by what they hold of each device, and guests that have it without a claim. */
function deviceHolders(device, provider, claims, host) {
    const held = [], seen = new Set();
    for (const claim of claims) {
        const parts = list(claim.devices).filter(one => (device && one.device === device.name) || (provider && one.provider === provider.uuid));
        const share = list(claim.allocations).find(one => one.provider === provider?.uuid);
        if (parts.length > 0 || share) {
            const what = parts.map(one => one.mdev).filter(Boolean).map(mdev => `mdev ${plain(mdev)}`);
            held.push({ claim: claim.id, text: label(claim), what: [amounts(share?.resources), ...what].filter(Boolean).join(', ') });
            seen.add(claim.consumer);
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
    held: { mark: '!', word: 'back for a short time only' },
};

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

/* GPUs and what has mediated devices: bridges only fill the page. */
function isInteresting(device) {
    return (device.class_code >> 16) === 3 || list(device.mdev_types).length > 0;
}

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

/* {facts, amounts, cells: [{id, text, amounts, cores, holders, devices}], devices: those of no cell} */
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

const CLAIM_STATES = { pending: 'waits for Placement', claimed: 'waits for its guest', confirmed: 'in use' };

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
        words: (CLAIM_STATES[claim.state] ?? plain(claim.state)) + (claim.resize_target ? ', target of a resize' : ''),
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

/* Those whose line has the text, at most max of them: {rows, n: of all, nFound}. */
export function claims(document, problemsDocument, now, text = '', max = 100) {
    const all = list(document?.claims), problems = list(problemsDocument?.problems), wanted = text.trim().toLowerCase();
    const rows = all.map(claim => makeClaim(claim, problems, now)).filter(row =>
        !wanted || [`#${row.id}`, row.name, row.consumer, row.holds, row.where, row.words].join(' ').toLowerCase().includes(wanted));
    return { rows: rows.slice(0, max), n: all.length, nFound: rows.length };
}

/* Who has to move before the host is empty. */
export function drain(document, max = 20) {
    const all = list(document?.claims);
    return { n: all.length, names: all.slice(0, max).map(label) };
}

/* What Retire would remove, or did, or who is in the way: {isDone, isFree, holders: [], foreign: [], providers: []} */
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

/* What happened, the last one first, at most max of them. */
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

export function guests(hostDocument, claimsDocument) {
    const byConsumer = new Map(list(claimsDocument?.claims).map(claim => [claim.consumer, claim.id]));
    return list(hostDocument?.domains).map(domain => ({
        key: plain(domain.uuid),
        name: plain(domain.name),
        state: plain(domain.state),
        has: `${domain.vcpus ?? 0} vCPU, ${size(domain.memory_kib ?? 0)}`,
        devices: list(domain.mdevs).length + list(domain.pci_addresses).length,
        claim: byConsumer.get(domain.uuid) ?? 0,
    }));
}

// ---- What differs

const REMEDIES = {
    none: 'somebody has to look',
    'release-share': 'heal removes its share of this host from Placement',
    'write-claim': 'heal writes to Placement what the claim holds',
    adopt: 'heal gives the guest a claim',
    'end-claim': 'heal ends the claim',
};

/* {steps: [{request, name, summary}], words}. An empty plan is no proof that Placement is equal to the host: the sync state is. */
export function plan(document, status) {
    const steps = list(document).map(step => ({
        request: `${plain(step.method)} ${plain(step.path)}`,
        name: plain(step.name),
        summary: plain(step.summary),
    }));
    const isEqual = status?.sync_state === 'synced' || status?.sync_state === 'left-to-nova';
    return {
        steps,
        words: steps.length > 0 ? `${count(steps.length, 'request')} to make Placement equal to this host`
               : isEqual ? '✓ Nothing is left to send: the tree in Placement is that of this host.'
               : `Nothing to send now; the sync state is ${plain(status?.sync_state) || 'unknown'}.`,
    };
}

/* {taken, words, findings: [{text, remedy, outcome, isOpen, isHealable}], nOpen, nHealable, inFlight}; null: no audit yet. Information
 * that is no problem is not open. A comparison that found nothing is no proof of agreement once the status has a reason again. */
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
               : `No difference was found ${taken}; the status of this host has a reason of its own above.`,
        holding: document.holding ?? 0,
        inFlight: document.in_flight ?? 0,
        findings,
        nOpen: findings.filter(one => one.isOpen).length,
        nHealable: findings.filter(one => one.isHealable).length,
    };
}

function flatten(consumer) {
    const parts = new Map();
    for (const [provider, one] of Object.entries(consumer?.allocations ?? {}))
        for (const [name, n] of Object.entries(one.resources ?? {}))
            parts.set(`${name} ${provider}`, { name, provider, n });
    return parts;
}

/* What a reshape moves: {moves: [{consumer, from: [], to: []}], problems: [{consumer, text}]}; null: nothing */
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

/* Of what cockpit.dbus() rejects with. */
export function refusal(error) {
    const name = String(error?.name ?? ''), message = plain(error?.message || error?.problem || name);
    if (name.endsWith('.AccessDenied') || name.endsWith('.InteractiveAuthorizationRequired') || error?.problem === 'access-denied')
        return `You may not do this: ${message}. Turn on administrative access, or ask for a polkit rule (SECURITY.md of compute-agent).`;
    return message || 'It failed, and nobody said why.';
}
