import pg from 'pg'
import type { Claim } from '../../../src/engine/claim.js'
import type { Alive, Operation } from '../../../src/engine/contract.js'
import { Calls, serverCall } from '../../../src/engines/postgres/calls.js'
import { SqlError } from '../../../src/engines/postgres/clients/sql-client.js'
import { keyOf, rowName } from '../../../src/engines/postgres/names.js'
import { outcomeOf } from '../../../src/engines/postgres/outcomes.js'
import { sendSign } from '../../../src/engines/postgres/signs.js'
import { schemaText } from '../../../src/engines/postgres/schema.js'
import { statementsOf, type Statements } from '../../../src/engines/postgres/statements.js'
import type { ServerOperation } from '../../../src/engines/postgres/call-arguments.js'
import { lockRequest } from '../lock-request.js'
import type { PostgresServer } from '../servers/postgres.js'
import { inOrder, type SentHint, type StoredRequest, type StoredTable } from '../stored-table.js'
import type { Answered, Differences, TablePort } from '../table-world.js'

/** Time between two operations, in milliseconds. Numbers come from the clock, and have to rise with each grant. */
const TICK = 0.005

/** Number of operations after which rows have their smallest size. */
const STEPS_OF_LARGE_ROWS = 20

/** The results of operations that one call executed. */
interface Together {
  readonly outcomes: readonly unknown[]
  readonly hints: readonly SentHint[]
  /** The stored state afterwards. */
  readonly stored: StoredTable
}

/** How operations reach the functions that decide. */
export type Way =
  /** As a box sends an operation that is alone in its tick. */
  | 'alone'
  /** As a box sends several operations: by the statements for many. */
  | 'together'
  /** As a box repeats an operation whose row was locked. */
  | 'again'

/** An entry of a queue. In the row of its first key, it has the whole request. */
type Entry = readonly [
  row: string,
  id: string,
  first: string | null,
  phase: number,
  expires: number,
  lease: number,
  number: number,
  since: number,
  label: string | null,
  claims: readonly Stored[] | null,
  seen: number | null,
]

/** A claim as the composite type of the schema. */
interface Stored {
  readonly name: string
  readonly mode: number
  readonly permits: number | null
  readonly max_permits: number | null
  readonly key: string | null
}

/** Changes the SQL of a schema. */
type Change = (text: string, schema: string) => string

/** Number of schemas that were created. */
let made = 0

/**
 * Ports of the lock table. Each has a schema and a connection of its own, and is used for one history after another.
 */
export class PostgresTablePorts {
  readonly #server: PostgresServer
  readonly #change: Change
  readonly #free: PostgresTablePort[] = []
  readonly #all: PostgresTablePort[] = []

  /** @param change changes the SQL of each schema */
  constructor(server: PostgresServer, change: Change = text => text) {
    this.#server = server
    this.#change = change
  }

  take(way: Way = 'alone'): PostgresTablePort {
    let port = this.#free.pop()
    if (!port) {
      const client = new pg.Client(this.#server.address)
      port = new PostgresTablePort(client, `s${++made}`, this.#change, () => this.#free.push(port!))
      this.#all.push(port)
    }
    port.begin(way)
    return port
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#all.map(port => port.close()))
  }
}

/**
 * The port of the lock table in a schema of its own, with a clock that the test sets. After some operations, short queues
 * have a tail, too, and rows have more requests than they would get.
 */
class PostgresTablePort implements TablePort {
  readonly differences: Differences = { canRevoke: true, late: 1 }
  readonly #client: pg.Client
  readonly #schema: string
  readonly #statements: Statements
  readonly #made: Promise<unknown>
  #calls = new Map<string, Calls>()
  #cleared: Promise<unknown> = Promise.resolve()
  #ahead = 0
  #steps = 0
  #way: Way = 'alone'
  #stored: StoredTable = { requests: new Map(), queues: new Map() }
  /** The row with each request. */
  readonly #homes = new Map<string, string>()

  constructor(
    client: pg.Client,
    schema: string,
    change: Change,
    readonly end: () => void,
  ) {
    this.#client = client
    this.#schema = schema
    this.#statements = statementsOf(schema)
    this.#made = client.connect().then(() =>
      client.query(`
        ${change(schemaText(schema), schema)}
        create table ${schema}.test_clock as select 0::float8 as at, 8 as size;
        create or replace function ${schema}.clock() returns float8 language sql volatile as
          'select c.at from ${schema}.test_clock c';
        create or replace function ${schema}.row_size() returns int language sql volatile as
          'select c.size from ${schema}.test_clock c';
        -- Removes at other times than the lock table does.
        alter function ${schema}.sweep(int, float8[]) rename to sweep_expired;
        create function ${schema}.sweep(int, float8[]) returns float8[] language sql as 'select $2'`),
    )
  }

  /** Begins a history with an empty table. */
  begin(way: Way): void {
    const tables = ['keys', 'data', 'tails', 'recorded', 'watchers', 'signs'].map(
      table => `${this.#schema}.${table}`,
    )
    this.#calls = new Map()
    this.#ahead = 0
    this.#steps = 0
    this.#way = way
    this.#stored = { requests: new Map(), queues: new Map() }
    this.#cleared = this.#made.then(() =>
      this.#client.query([...tables.map(table => `delete from ${table}`), this.#sizeOfRows(8)].join(';')),
    )
  }

  #sizeOfRows(size: number): string {
    return `update ${this.#schema}.test_clock set size = ${size}`
  }

  async decide(session: string, operation: Operation, now: number): Promise<Answered> {
    await this.#cleared
    if (++this.#steps === STEPS_OF_LARGE_ROWS) await this.#client.query(this.#sizeOfRows(3))
    const { outcomes, hints, stored } =
      operation.type === 'alive'
        ? await this.#alive(session, operation, now)
        : await this.together(session, [operation], now)
    return { answer: outcomes[0], hints, stored }
  }

  async write(stored: StoredTable, now: number): Promise<void> {
    await this.#cleared
    const own = this.#schema
    const text = (value: string | undefined): string =>
      value === undefined ? 'null' : pg.escapeLiteral(value)
    const statements = [`update ${own}.test_clock set at = ${now}`]
    let row = 0
    for (const [key, ids] of stored.queues) {
      const name = text(rowName('lock', key))
      const queue = ids.map(id => {
        const { phase, expires, seen, lease, number, since, label, claims } = stored.requests.get(id)!
        const home = rowName('lock', claims[0]!.key)
        if (claims[0]!.key !== key)
          return `row(${text(id)}, ${text(home)}${', null'.repeat(10)})::${own}.request`
        const its = claims.map(claim => {
          const [permits, max] = claim.mode === 'permits' ? [claim.permits, claim.max] : ['null', 'null']
          return `row(${text(rowName('lock', claim.key))}, ${MODES.indexOf(claim.mode) + 1}, ${permits}, ${max}, null)::${own}.claim`
        })
        const isPlain = claims.length === 1 && claims[0]!.mode === 'exclusive'
        const values = [text(id), 'null', text(id.slice(0, id.indexOf('.'))), "'host'", 1, text(label)]
        values.push(PHASES.indexOf(phase), expires, lease!, seen === undefined ? number : -1, since)
        return `row(${values.join(', ')}, ${isPlain ? 'null' : `array[${its.join(', ')}]`})::${own}.request`
      })
      statements.push(
        `insert into ${own}.keys (name, id) values (${name}, ${++row})`,
        `insert into ${own}.data (id, name, version, queue) values (${row}, ${name}, 1000, array[${queue.join(', ')}])`,
      )
    }
    await this.#client.query(statements.join(';'))
    this.#homes.clear()
    for (const { id, claims } of stored.requests.values())
      this.#homes.set(id, rowName('lock', claims[0]!.key))
    this.#stored = stored
  }

  /** Executes operations by one call. @param later time since the last call, in milliseconds */
  async together(
    session: string,
    operations: readonly Operation[],
    now: number,
    later = TICK,
  ): Promise<Together> {
    await this.#cleared
    const at = now + (this.#ahead += later)
    let calls = this.#calls.get(session)
    if (!calls) {
      calls = new Calls(this.#statements, () => ({ session, host: 'host', pid: 1, label: undefined }))
      this.#calls.set(session, calls)
    }
    const all: ServerOperation[] = operations.map(operation =>
      operation.type === 'revoke'
        ? { ...operation, rows: this.#rowsOf(operation.session) }
        : (operation as ServerOperation),
    )
    // Another operation, on a row that nothing else uses.
    if (this.#way === 'together')
      all.push({ type: 'renew', request: lockRequest('amy.none', [COMPANION]), number: 1, lease: 1 })
    const sent = all.map(serverCall)
    const { answers, notices } = await calls.decide(sent, (text, values) => this.#query(text, values, at), {
      isRetry: this.#way === 'again',
    })
    return {
      outcomes: operations.map((_, index) => outcomeOf(all[index]!, answers[index]!)),
      hints: notices.flatMap(([type, to, id]): SentHint[] =>
        type === 'changed' ? [] : [{ session: to, type, id }],
      ),
      stored: this.#stored,
    }
  }

  #rowsOf(session: string): string[] {
    const homes = [...this.#stored.requests.values()].filter(({ id }) => id.startsWith(`${session}.`))
    return [...new Set(homes.map(({ id }) => this.#homes.get(id)!))]
  }

  async #alive(session: string, sign: Alive, now: number): Promise<Together> {
    const at = now + (this.#ahead += TICK)
    const hints: SentHint[] = []
    const outcome = await sendSign(
      sign,
      (text, values) => this.#query(text, values, at),
      this.#statements,
      async keys => {
        hints.push(...(await this.together(session, [{ type: 'sweepExpired', keys }], now, 0)).hints)
      },
    )
    return { outcomes: [outcome], hints, stored: this.#stored }
  }

  /** Deletes expired requests. Returns the number of requests that are left in rows and tails. */
  async sweep(now: number): Promise<number> {
    await this.together('amy', [], now)
    await this.#client.query(`update ${this.#schema}.keys set due = 1`)
    await this.#client.query(`select ${this.#schema}.sweep_expired(100, '{0,0}')`)
    const { rows } = await this.#client.query<{ left: string }>(
      `select (select coalesce(sum(cardinality(d.queue)), 0) from ${this.#schema}.data d)
        + (select count(*) from ${this.#schema}.tails t) as left`,
    )
    return Number(rows[0]!.left)
  }

  close(): Promise<void> {
    return this.#client.end()
  }

  /** Executes a statement at a time, and then reads the stored state, all by one message to the server. */
  async #query(text: string, values: readonly string[], at: number): Promise<unknown> {
    const statement = text.replaceAll(/\$(\d+)/g, (_, place: string) =>
      pg.escapeLiteral(values[Number(place) - 1]!),
    )
    const parts = [`update ${this.#schema}.test_clock set at = ${at}`, statement, this.#reading]
    try {
      const results = (await this.#client.query<unknown[]>({
        text: parts.join(';'),
        rowMode: 'array',
      } as never)) as unknown as readonly pg.QueryArrayResult[]
      this.#stored = this.#tableIn(JSON.parse(results[2]!.rows[0]![0] as string) as [number, Entry[]])
      return results[1]!.rows[0]?.[0]
    } catch (error) {
      const { message, code } = error as Error & { readonly code?: string }
      throw new SqlError(message, code, false, error)
    }
  }

  /** Reads the entries of all queues in order, and the number of those in tails that the functions would not find. */
  get #reading(): string {
    const own = this.#schema
    const fields = 'phase expires lease number since label claims'.split(' ')
    const select = (source: string): string => fields.map(field => `(${source}).${field}`).join(', ')
    return `select json_build_array(
      (select count(*) from ${own}.tails t left join ${own}.data d on d.name = t.name
        where d.id is null or not ${own}.is_full(d.queue) or t.place <= ${own}.tail_after(d.queue)),
      (select coalesce(json_agg(json_build_array(e.row, e.id, e.first, ${fields.map(field => `e.${field}`).join(', ')},
          (select s.seen from ${own}.signs s where s.session = e.session)) order by e.row, e.part, e.place), '[]')
        from (
          select d.name as row, 1 as part, q.place, q.id, q.first, q.session, ${fields.map(field => `q.${field}`).join(', ')}
            from ${own}.data d cross join lateral unnest(d.queue) with ordinality
              q(id, first, session, host, pid, label, phase, expires, lease, number, since, claims, place)
          union all
          select t.name, 2, t.place, t.id, (t.request).first, (t.request).session, ${select('t.request')}
            from ${own}.tails t) e))::text`
  }

  #tableIn([lost, entries]: readonly [number, readonly Entry[]]): StoredTable {
    if (lost > 0) throw new Error(`${lost} requests in tails cannot be found`)
    const requests = new Map<string, StoredRequest>()
    const queues = new Map<string, string[]>()
    this.#homes.clear()
    for (const [row, id, first, phase, expires, lease, number, since, label, claims, seen] of entries) {
      const key = keyOf(row)!
      queues.set(key, [...(queues.get(key) ?? []), id])
      if (first !== null) continue
      this.#homes.set(id, row)
      const its = claims?.map(({ name, mode, permits, max_permits: max }): Claim => {
        const claimed = keyOf(name)!
        if (mode === 3) return { key: claimed, mode: 'permits', permits: permits!, max: max! }
        return { key: claimed, mode: mode === 2 ? 'shared' : 'exclusive' }
      })
      requests.set(id, {
        ...{
          id,
          phase: PHASES[phase]!,
          expires,
          lease,
          number: Math.max(number, 0),
          since,
          label: label ?? undefined,
        },
        seen: number === -1 ? (seen ?? -Infinity) : undefined,
        claims: inOrder(its ?? [{ key, mode: 'exclusive' }]),
      })
    }
    for (const [row, id, first] of entries)
      if (first !== null && this.#homes.get(id) !== first)
        throw new Error(`${row} refers to ${id} in ${first}`)
    return { requests, queues }
  }
}

const MODES: readonly Claim['mode'][] = ['exclusive', 'shared', 'permits']
const PHASES = ['waiting', 'reserved', 'held'] as const

/** A claim on a key that nothing else uses. */
const COMPANION: Claim = { key: 'companion', mode: 'exclusive' }
