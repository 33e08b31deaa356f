import { setTimeout as sleep } from 'node:timers/promises'
import { InvalidArgumentError, open, type Box, type Guarantees } from 'signalbox'
import { START_BALANCE } from './check/money.js'
import { Client } from './client-process.js'
import { FaultMaker } from './fault-maker.js'
import { canHoldValues, holdValues } from './held-values.js'
import type { Account, Fault, History } from './history.js'
import { recoveryLimits, silenceOf } from './limits.js'
import { drawFault, possibleKinds } from './plan.js'
import { ACCOUNTS, accountsOf, valuesOf, type FromClient } from './protocol.js'
import { Random } from 'signalbox-conformance'
import { Recorder } from './recorder.js'
import { Resource } from './resource.js'
import { CommandServer } from './servers/command-server.js'
import type { Settings } from './settings.js'
import { settle } from './settling.js'
import { watchStalls } from './stalls.js'
import { isServed, Ways } from './ways.js'

/** Time that clients have to stop when asked, in addition to some leases, in milliseconds. Then they are killed. */
const ENDING = 15_000
const LEASES_TO_END = 8

/** The result of a run. */
export interface Outcome {
  readonly history: History
  readonly guarantees: Guarantees
  readonly seconds: number
}

/**
 * Runs clients and faults until the number of faults or the time is reached.
 * @param interrupted ends the run early when it aborts.
 * @param onFault receives each fault when everything has continued, or the harness has given up waiting.
 * @throws the errors of opening the engine, InvalidArgumentError if a port is taken, and Error if clients cannot start.
 */
export async function chaos(
  settings: Settings,
  interrupted: AbortSignal,
  onFault: (fault: Fault) => void,
): Promise<Outcome> {
  if (settings.server !== undefined && (await isServed(settings.engine)))
    throw new InvalidArgumentError(
      '--server: another one listens there already, and faults would miss it; end that one first',
    )
  await using server =
    settings.server === undefined ? undefined : new CommandServer(settings.server, settings.engine)
  // Takes the ports before the server and the clients start.
  await using ways = await Ways.start(settings.engine, settings.processes, settings.proxyPort)
  await server?.start()
  const guarantees = await guaranteesOf(settings.engine)
  return await new Run(settings, ways, server, guarantees).play(interrupted, onFault)
}

async function guaranteesOf(url: string): Promise<Guarantees> {
  const box = await open(url)
  await box.close()
  return box.guarantees
}

class Run {
  readonly #settings: Settings
  readonly #ways: Ways
  readonly #server: CommandServer | undefined
  readonly #guarantees: Guarantees
  readonly #recorder = new Recorder()
  readonly #resource = new Resource()
  readonly #clients: Client[] = []
  /** Prefix of all names in the engine, so that runs do not affect each other. */
  readonly #name = `chaos-${Date.now().toString(36)}-${process.pid}`
  #lives = 0

  constructor(settings: Settings, ways: Ways, server: CommandServer | undefined, guarantees: Guarantees) {
    this.#settings = settings
    this.#ways = ways
    this.#server = server
    this.#guarantees = guarantees
  }

  async play(interrupted: AbortSignal, onFault: (fault: Fault) => void): Promise<Outcome> {
    const { engine, lease, processes, faults, seconds, seed } = this.#settings
    const kinds = possibleKinds(engine, {
      network: this.#ways.exist,
      server: this.#server !== undefined,
      values: await canHoldValues(engine),
    })
    const limits = recoveryLimits(engine, lease, kinds, this.#guarantees.deadHolder)
    const recorder = this.#recorder
    watchStalls(lease, (from, until) => recorder.stalled(from, until))
    try {
      for (let place = 0; place < processes; place++) this.#begin(place)
      await Promise.all(this.#clients.map(({ ready }) => ready))
      const started = recorder.now
      const random = new Random(seed)
      const maker = new FaultMaker({
        settings: this.#settings,
        ways: this.#ways,
        server: this.#server,
        clients: this.#clients,
        recorder,
        limits,
        begin: place => this.#begin(place),
        holdValues: () => holdValues(engine, this.#name),
        interrupted,
      })
      while (recorder.faults.length < faults && recorder.now - started < seconds * 1000) {
        if (interrupted.aborted) break
        const fault = await maker.make(drawFault(random, kinds, processes))
        if (!fault) continue
        recorder.faults.push(fault)
        onFault(fault)
      }
      await sleep(lease / 2, undefined, { signal: interrupted }).catch(() => undefined)
      const took = (recorder.now - started) / 1000
      await this.#finish()
      const accounts = await this.#accounts()
      return {
        history: recorder.history({
          lease,
          limits,
          counters: this.#resource.counts(),
          ...(accounts && { accounts }),
        }),
        guarantees: this.#guarantees,
        seconds: took,
      }
    } finally {
      for (const client of this.#clients) if (client.end === undefined) client.signal('SIGKILL')
    }
  }

  /** Starts a client at a place and replaces the previous one. */
  #begin(place: number): Client {
    const { peer, lease, seed } = this.#settings
    const life = ++this.#lives
    const client = new Client(
      {
        who: `${place + 1}.${life}`,
        url: this.#ways.url(place),
        ...(peer !== undefined && { peer }),
        seed: seed + life,
        run: this.#name,
        lease,
      },
      (from, message) => this.#receive(from, message),
    )
    this.#clients[place] = client
    return client
  }

  #receive(client: Client, message: FromClient): void {
    const { who } = client
    if (message.say === 'read') {
      const { call, key, token } = message
      client.send({ order: 'answer', call, counts: this.#resource.read(key, token) })
    } else if (message.say === 'write') {
      const { call, key, token, read } = message
      this.#recorder.updated(this.#resource.write(who, key, token, read, this.#recorder.now))
      client.send({ order: 'answer', call, counts: read })
    } else this.#recorder.receive(who, message)
  }

  async #finish(): Promise<void> {
    for (const client of this.#clients) client.send({ order: 'stop' })
    const limit = ENDING + LEASES_TO_END * this.#settings.lease
    const late = new AbortController()
    await Promise.race([
      Promise.all(this.#clients.map(({ ended }) => ended)),
      sleep(limit, undefined, { signal: late.signal }).catch(() => undefined),
    ])
    late.abort()
    for (const { who, end } of this.#clients) {
      if (end === undefined) this.#recorder.escaped(`client ${who} did not end within ${limit} ms`)
      else if (end !== 'status 0') this.#recorder.escaped(`client ${who} ended with ${end}`)
    }
  }

  /** Settles the outcomes of the transfers, reads the accounts, and deletes the values that the run stored. */
  async #accounts(): Promise<Record<string, Account> | undefined> {
    if (this.#settings.peer !== undefined || this.#guarantees.durability === 'none') return undefined
    await using box = await open(this.#settings.engine)
    const store = box.store(accountsOf(this.#name))
    const { engine, lease } = this.#settings
    await settle(this.#recorder, store, lease, ENDING + LEASES_TO_END * silenceOf(engine, lease))
    const found: Record<string, Account> = {}
    for (const name of ACCOUNTS)
      found[name] = (await store.get<Account>(name))?.value ?? { balance: START_BALANCE, changes: 0 }
    await Promise.all(ACCOUNTS.map(name => store.delete(name)))
    await this.#forgetValues(box)
    return found
  }

  async #forgetValues(box: Box): Promise<void> {
    const store = box.store(valuesOf(this.#name))
    const keys = [...new Set(this.#recorder.calls.map(({ key }) => key))]
    // In parts, because the size of a request is limited.
    for (let from = 0; from < keys.length; from += 100)
      await Promise.all(keys.slice(from, from + 100).map(key => store.delete(key)))
  }
}
