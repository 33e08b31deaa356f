import { DamagedValueError } from '../../base/errors.js'
import { BLANK, type Change, type KeyRecord, type Stamp } from './key-record.js'

/** A record as stored, without its empty parts. */
interface RecordJson {
  value?: unknown
  version: number
  token?: string
  ids?: Record<string, number>
  decided?: readonly string[]
  until?: number
  stamp?: StampJson
}

interface StampJson {
  state: Stamp['state']
  attempt: string
  token: string
  until: number
  primary?: string
  others?: readonly string[]
  changes?: readonly ChangeJson[]
}

interface ChangeJson {
  key: string
  value?: unknown
  /** Missing if the key was only read. */
  version?: number
  ids?: Record<string, number>
}

export function recordText(record: KeyRecord): string {
  const { value, version, token, ids, decided, until, stamp } = record
  const json: RecordJson = {
    ...valueJson(value),
    version,
    ...(token > 0n && { token: String(token) }),
    ...idsJson(ids),
    ...(decided.length > 0 && { decided }),
    ...(value === undefined && until > 0 && { until }),
    ...(stamp && { stamp: stampJson(stamp) }),
  }
  return JSON.stringify(json)
}

/** @throws DamagedValueError when the text is damaged */
export function parseRecord(key: string, text: string): KeyRecord {
  try {
    const json = JSON.parse(text) as RecordJson
    if (!Number.isSafeInteger(json.version)) throw new TypeError('its version is missing')
    return {
      ...BLANK,
      value: valueText(json),
      version: json.version,
      token: BigInt(json.token ?? 0),
      ids: new Map(Object.entries(json.ids ?? {})),
      decided: json.decided ?? [],
      until: json.until ?? 0,
      stamp: json.stamp && parseStamp(json.stamp),
    }
  } catch (cause) {
    throw new DamagedValueError(`the data of ${key} is not a record of Signalbox`, { key, cause })
  }
}

function stampJson(stamp: Stamp): StampJson {
  const { state, attempt, token, until } = stamp
  const common = { state, attempt, token: String(token), until }
  if (stamp.state === 'pointer') return { ...common, primary: stamp.primary }
  const changes = [...stamp.changes].map(([key, { write, ids }]) => ({
    key,
    ...(write && { ...valueJson(write.value), version: write.version }),
    ...idsJson(ids),
  }))
  return { ...common, others: stamp.others, ...(changes.length > 0 && { changes }) }
}

function parseStamp({ state, attempt, token, until, primary, others, changes }: StampJson): Stamp {
  const common = { attempt, token: BigInt(token), until }
  if (state === 'pointer') return { ...common, state, primary: primary! }
  return {
    ...common,
    state,
    others: others!,
    changes: new Map((changes ?? []).map(change => [change.key, parseChange(change)])),
  }
}

function parseChange(json: ChangeJson): Change {
  return {
    write: json.version === undefined ? undefined : { value: valueText(json), version: json.version },
    ids: new Map(Object.entries(json.ids ?? {})),
  }
}

/** Values are JSON in the record, not strings, so that other programs can read them. */
function valueJson(text: string | undefined): { value?: unknown } {
  return text === undefined ? {} : { value: JSON.parse(text) as unknown }
}

function valueText(json: { value?: unknown }): string | undefined {
  return json.value === undefined ? undefined : JSON.stringify(json.value)
}

function idsJson(ids: ReadonlyMap<string, number>): { ids?: Record<string, number> } {
  return ids.size === 0 ? {} : { ids: Object.fromEntries(ids) }
}
