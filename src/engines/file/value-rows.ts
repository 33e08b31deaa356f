import type { List, RecordedId, Versioned } from '../../engine/contract.js'
import type { Connection } from './driver.js'
import { Sweep } from './sweep.js'

/** Number of IDs that a sweep checks together. */
const CHUNK = 512
/** The expiry of IDs is rounded up to a multiple of this, in milliseconds, so that one statement records many. */
const PRECISION = 1000

/** The values of the store and the recorded IDs. `flush` writes the changes of an operation. */
export class ValueRows {
  readonly #sql: ReturnType<typeof statements>
  readonly #sweep: Sweep
  readonly #writes = new Map<string, { value: string | undefined; version: number }>()
  /** IDs to record, by the time until which they are kept. */
  readonly #records = new Map<number, RecordedId[]>()

  constructor(connection: Connection) {
    this.#sql = statements(connection)
    this.#sweep = new Sweep(connection, 'ids', ['key', 'id'], CHUNK)
  }

  values(keys: readonly string[]): Versioned[] {
    if (keys.length === 0) return []
    if (keys.length === 1) return [versioned(this.#sql.value.get(keys[0]!))]
    const rows = JSON.parse(this.#sql.values.get(JSON.stringify(keys))![0] as string) as [
      string | null,
      number | null,
    ][]
    return rows.map(versioned)
  }

  /** Returns the keys in the order of their UTF-8 bytes. */
  list({ prefix, after, limit }: List): string[] {
    const rows = this.#sql.list.all(prefix, after, limit)
    const keys = rows.map(row => row[0] as string)
    // The keys with the prefix come before all others that were found.
    return keys.filter(key => key.startsWith(prefix))
  }

  put(key: string, value: string | undefined, version: number): void {
    this.#writes.set(key, { value, version })
  }

  recorded(ids: readonly RecordedId[]): boolean[] {
    if (ids.length === 0) return []
    return (JSON.parse(this.#sql.recorded.get(keysById(ids))![0] as string) as number[]).map(Boolean)
  }

  /** @param retention how long the ID is kept: milliseconds of the wall clock, which continues across a reboot. */
  record(key: string, id: string, retention: number): void {
    const until = (Math.floor((Date.now() + retention) / PRECISION) + 1) * PRECISION
    const records = this.#records.get(until)
    if (records) records.push({ key, id })
    else this.#records.set(until, [{ key, id }])
  }

  flush(): void {
    const puts: [string, string, number][] = []
    for (const [key, { value, version }] of this.#writes) {
      if (value === undefined) this.#sql.deleteValue.run(key)
      else puts.push([key, value, version])
    }
    if (puts.length > 0) this.#sql.putValues.run(JSON.stringify(puts))
    for (const [until, ids] of this.#records) {
      this.#sql.putIds.run(keysById(ids), until)
      this.#sweep.written(ids.length, Date.now())
    }
    this.forget()
  }

  /** Drops unwritten changes after a rollback. */
  forget(): void {
    this.#writes.clear()
    this.#records.clear()
  }
}

/**
 * Returns a JSON object from IDs to keys. SQLite reads it faster than an array of pairs. An ID may occur repeatedly.
 */
function keysById(ids: readonly RecordedId[]): string {
  return `{${ids.map(({ key, id }) => `${JSON.stringify(id)}:${JSON.stringify(key)}`).join()}}`
}

function versioned(row: readonly unknown[] | undefined): Versioned {
  const [value, version] = (row ?? [null, null]) as [string | null, number | null]
  return { value: value ?? undefined, version: version ?? 0 }
}

function statements(connection: Connection) {
  return {
    value: connection.prepare('select value, version from entries where key = ?'),
    values: connection.prepare(
      `select json_group_array(json_array(e.value, e.version)) as found
       from json_each(?) k left join entries e on e.key = k.value`,
    ),
    list: connection.prepare('select key from entries where key >= ? and key > ? order by key limit ?'),
    putValues: connection.prepare(
      `insert into entries select value ->> 0, value ->> 1, value ->> 2 from json_each(?) where true
       on conflict (key) do update set value = excluded.value, version = excluded.version`,
    ),
    deleteValue: connection.prepare('delete from entries where key = ?'),
    recorded: connection.prepare(
      `select json_group_array(
         exists (select 1 from ids i where i.key = p.value and i.id = p.key)
       ) as found from json_each(?) p`,
    ),
    putIds: connection.prepare(
      `insert into ids select value, key, ?2 from json_each(?1) where true
       on conflict (key, id) do update set until = excluded.until`,
    ),
  }
}
