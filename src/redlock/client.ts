/** A client of one server, of `ioredis` or `redis`. */
export interface RedlockClient {
  quit(): Promise<unknown>
}

interface Commands {
  get(key: string): Promise<unknown>
  eval(script: string, ...rest: unknown[]): Promise<unknown>
  /** Only in ioredis. */
  readonly defineCommand?: unknown
}

/** The texts of a grant of Signalbox begin alike on all servers of a quorum; only its number may differ. */
const SAME = `
local function same(text)
  local own = string.match(ARGV[1], '^signalbox/1 %S+ ')
  return text == ARGV[1] or (own and text and string.sub(text, 1, #own) == own)
end
`

const RELEASE = `${SAME}
local count = 0
for _, key in ipairs(KEYS) do
  if same(redis.call('GET', key)) then
    redis.call('DEL', key)
    count = count + 1
  end
end
return count
`

const EXTEND = `${SAME}
for _, key in ipairs(KEYS) do
  if not same(redis.call('GET', key)) then return 0 end
end
for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, ARGV[2]) end
return #KEYS
`

/** Returns the value of a key on the first server that has one. @throws what the clients throw */
export async function valueOf(clients: Iterable<RedlockClient>, key: string): Promise<string | undefined> {
  const found = await Promise.allSettled([...clients].map(client => (client as unknown as Commands).get(key)))
  for (const result of found)
    if (result.status === 'fulfilled' && typeof result.value === 'string') return result.value
  for (const result of found) if (result.status === 'rejected') throw result.reason
  return undefined
}

/** Deletes keys that have this value. @returns whether most servers had all of them */
export function releaseValue(
  clients: ReadonlySet<RedlockClient>,
  keys: readonly string[],
  value: string,
): Promise<boolean> {
  return succeeds(clients, RELEASE, keys, [value])
}

/** Has keys that have this value last for `duration` milliseconds. @returns whether most servers had all of them */
export function extendValue(
  clients: ReadonlySet<RedlockClient>,
  keys: readonly string[],
  value: string,
  duration: number,
): Promise<boolean> {
  return succeeds(clients, EXTEND, keys, [value, String(duration)])
}

async function succeeds(
  clients: ReadonlySet<RedlockClient>,
  script: string,
  keys: readonly string[],
  args: readonly string[],
): Promise<boolean> {
  const results = await Promise.allSettled(
    [...clients].map(client => {
      const commands = client as unknown as Commands
      return commands.defineCommand === undefined
        ? commands.eval(script, { keys, arguments: args })
        : commands.eval(script, keys.length, ...keys, ...args)
    }),
  )
  const votes = results.filter(
    result => result.status === 'fulfilled' && Number(result.value) === keys.length,
  )
  return votes.length > clients.size / 2
}
