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

/** The beginning of a value of Signalbox, which all servers of a quorum share for one grant. */
const OWN = /^signalbox\/1 \S+ /

/**
 * Compares values. The values of one grant of Signalbox begin alike on all servers of a quorum, but numbers may differ.
 */
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

/**
 * Returns the value of a key on more than half of the servers. Other servers may have the value of a client that got
 * too few votes, or may not reply.
 * @returns undefined if there is none
 * @throws the error of a client, if there is none for that reason
 */
export async function valueOf(clients: ReadonlySet<RedlockClient>, key: string): Promise<string | undefined> {
  let failure: unknown
  const text = await agreed(
    clients,
    async commands => {
      const found = await commands.get(key).catch((error: unknown) => void (failure = error))
      // A client may be set to return buffers.
      return Buffer.isBuffer(found) ? found.toString() : found
    },
    found => (typeof found === 'string' ? (OWN.exec(found)?.[0] ?? found) : undefined),
  )
  if (text === undefined && failure !== undefined) throw failure as Error
  return text as string | undefined
}

/**
 * Deletes keys with this value, or lets them expire in `duration` milliseconds.
 * @returns whether most servers had all of them
 */
export async function endValue(
  clients: ReadonlySet<RedlockClient>,
  keys: readonly string[],
  value: string,
  duration?: number,
): Promise<boolean> {
  const script = duration === undefined ? RELEASE : EXTEND
  const args = duration === undefined ? [value] : [value, String(duration)]
  const count = await agreed(
    clients,
    commands =>
      commands.defineCommand === undefined
        ? commands.eval(script, { keys, arguments: args })
        : commands.eval(script, keys.length, ...keys, ...args),
    found => Number(found) === keys.length || undefined,
  )
  return count !== undefined
}

/**
 * Returns a reply as soon as more than half of the servers have given the same vote, or undefined as soon as that is
 * impossible. A server that is frozen may never reply.
 * @param voteOf the vote of a reply; undefined for a reply that is no vote. An error is no vote either.
 */
function agreed(
  clients: ReadonlySet<RedlockClient>,
  ask: (commands: Commands) => Promise<unknown>,
  voteOf: (reply: unknown) => string | true | undefined,
): Promise<unknown> {
  const most = Math.floor(clients.size / 2) + 1
  const votes = new Map<unknown, number>()
  let missing = clients.size
  return new Promise(resolve => {
    const count = (reply?: unknown): void => {
      const vote = voteOf(reply)
      if (vote !== undefined) votes.set(vote, (votes.get(vote) ?? 0) + 1)
      if (votes.get(vote) === most) resolve(reply)
      if (Math.max(0, ...votes.values()) + --missing < most) resolve(undefined)
    }
    for (const client of clients)
      void ask(client as unknown as Commands).then(count, () => {
        count()
      })
  })
}
