import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { queued } from '../../packages/conformance/src/time.js'
import { RedisPlace } from '../support/redis/place.js'
import { CommandPlace, PATIENCE } from './command-line.js'

describe.concurrent('show, graph and top', () => {
  test('show the holders and waiters, and whom each waits for', async () => {
    await using place = new CommandPlace()
    const [first, second] = [await place.box('first'), await place.box('second')]
    const grant = await first.mutex('a').acquire()
    await second.mutex('b').acquire()
    await first.mutex('ab').acquire()
    const stop = new AbortController()
    const waiting = [
      second.mutex('a').acquire({ signal: stop.signal }),
      first.mutex('b').acquire({ signal: stop.signal }),
    ].map(wait => wait.catch(() => undefined))
    await queued(first, 'a', 1)
    await queued(first, 'b', 1)

    const [shown, json, nothing, graph, graphJson, top, topJson, twice] = await Promise.all([
      place.signalbox('show', 'a'),
      place.signalbox('show', 'a', '--json'),
      place.signalbox('show', 'abc'),
      place.signalbox('graph'),
      place.signalbox('graph', '--json', 'a'),
      place.signalbox('top'),
      place.signalbox('top', '--json', 'ab'),
      place.signalbox('top', '--every', '10ms', '--count', '2', 'ab'),
    ])
    expect(shown.stdout.trim().split('\n')).toHaveLength(3)
    expect(JSON.parse(json.stdout)).toMatchObject({
      key: 'a',
      holders: [{ session: first.session, token: String(grant.token) }],
      waiters: [{ session: second.session }],
    })
    expect(nothing).toMatchObject({
      status: 1,
      stderr: 'signalbox: abc has no holder and no waiter, and no limiter of that name is in use\n',
    })

    const lines = graph.stdout.trim().split('\n')
    expect(lines.slice(1, 3).map(line => line.split(/ {2,}/)[0])).toEqual(['second', 'first'])
    expect(lines[3]).toMatch(/^cycle, possibly a deadlock: /)
    expect(lines).toHaveLength(4)
    expect(JSON.parse(graphJson.stdout)).toMatchObject({
      waits: [
        { key: 'a', waiter: { session: second.session }, blocker: { session: first.session }, holds: true },
      ],
      cycles: [],
    })

    expect(top.stdout).toMatch(
      /^keys in use: 3, holders: 3, waiters: 2\nKEY .*\na .*first.*second.*\nb .*\nab .*\n$/,
    )
    expect(top.stdout).not.toContain('\u001b')
    expect(JSON.parse(topJson.stdout)).toMatchObject({ key: 'ab' })
    expect(twice.stdout.match(/^keys in use: 1,/gm)).toHaveLength(2)
    stop.abort()
    await Promise.all(waiting)
  })

  test('ls and show have limiters, and resume ends their pauses', async () => {
    await using place = new CommandPlace()
    const box = await place.box('first')
    const limiter = box.limiter('partner', { limit: 20, per: '1m' })
    await limiter.acquire(3)
    await limiter.key('amy').pauseUntil(Date.now() + 3_600_000)

    const [ls, show, json] = await Promise.all([
      place.signalbox('ls'),
      place.signalbox('show', 'partner'),
      place.signalbox('ls', '--json', 'part'),
    ])
    expect(ls.stdout).toMatch(
      /^KEY .*\n\nLIMITER .*\npartner +20 per 1m 0s +3 +17 .*\npartner +amy .* 59m \d+s/,
    )
    expect(show.stdout.split('\n')).toHaveLength(4)
    expect(
      json.stdout
        .trim()
        .split('\n')
        .map(line => JSON.parse(line) as object),
    ).toMatchObject([
      { limiter: 'partner', limits: [{ limit: 20, used: 3 }], pausedFor: 0 },
      { limiter: 'partner', key: 'amy', waiting: [] },
    ])
    expect(await place.signalbox('resume', 'partner')).toMatchObject({ stdout: 'resumed limiter partner\n' })
    expect(await limiter.key('amy').tryAcquire()).toBeDefined()
    expect(await place.signalbox('resume', 'partner', 'amy')).toMatchObject({
      status: 1,
      stderr: 'signalbox: key amy of limiter partner is not paused\n',
    })
  })

  test('top draws on a terminal until it is interrupted, without colour if that is turned off', async () => {
    await using place = new CommandPlace()
    const box = await place.box('holder')
    await using _grant = await box.mutex('a').acquire()
    const draw = (environment: string): Promise<{ status: number | null; stdout: string }> =>
      place.bash(
        `TERM=xterm ${environment} timeout --preserve-status -s INT 50 script -qec '"$NODE" "$SIGNALBOX" top --every 50ms --count 3' /dev/null`,
      )
    const [coloured, plain] = await Promise.all([draw('env -u NO_COLOR'), draw('NO_COLOR=1')])
    expect(coloured.stdout.split('\u001b[H\u001b[2J')).toHaveLength(4)
    expect(coloured.stdout).toContain('\u001b[1m')
    expect(plain.stdout).toContain('\u001b[H')
    expect(plain.stdout).not.toContain('\u001b[1m')
    const endless = place.start('top', '--every', '20ms', '--count', '1000000')
    await vi.waitFor(() => expect(endless.stdout.split('keys in use').length).toBeGreaterThan(3), PATIENCE)
    endless.kill('SIGINT')
    expect(await endless.ended).toMatchObject({ status: 0, stderr: '' })
    const read = await place.bash(
      '"$NODE" "$SIGNALBOX" top --every 10ms --count 1000000 | head -n 1; echo "${PIPESTATUS[0]}"',
    )
    expect(read).toEqual({ status: 0, stdout: 'keys in use: 1, holders: 1, waiters: 0\n0\n', stderr: '' })
  })
})

describe.concurrent('wait', () => {
  test('waits until a key is free, or until its time limit', async () => {
    await using place = new CommandPlace()
    const box = await place.box('holder')
    const grant = await box.mutex('a').acquire()
    expect((await place.signalbox('wait', 'a', '--wait', '50ms')).status).toBe(75)
    const waiting = [place.start('wait', 'a'), place.start('wait', 'a')]
    await queued(box, 'a', 2)
    await grant.release()
    const ends = await Promise.all(waiting.map(({ ended }) => ended))
    expect(ends).toEqual([1, 2].map(() => ({ status: 0, stdout: '', stderr: '' })))
    const free = await place.signalbox('wait', 'free', '--json')
    expect(free).toMatchObject({ status: 0, stderr: '' })
    expect(JSON.parse(free.stdout)).toEqual({ key: 'free', waited: expect.any(Number) as number })
  })
})

describe.concurrent('get, put and cas', () => {
  test('read and write values by their versions', async () => {
    await using place = new CommandPlace()
    const put = await place.signalbox('put', 'prices', 'bread', '{"euros":2}')
    const version = put.stdout.trim()
    expect(put).toMatchObject({ status: 0, stderr: '' })
    const [got, json, none, unfit] = await Promise.all([
      place.signalbox('get', 'prices', 'bread'),
      place.signalbox('get', 'prices', 'bread', '--json'),
      place.signalbox('get', 'prices', 'milk'),
      place.signalbox('put', 'prices', 'bread', 'dear'),
    ])
    expect(got.stdout).toBe('{"euros":2}\n')
    expect(JSON.parse(json.stdout)).toEqual({
      store: 'prices',
      key: 'bread',
      version: Number(version),
      value: { euros: 2 },
    })
    expect(none).toMatchObject({ status: 1, stdout: '', stderr: 'signalbox: prices has no key milk\n' })
    expect(unfit).toMatchObject({ status: 2, stdout: '' })
    const changed = await place.bash(`echo '[1, 2]' | "$NODE" "$SIGNALBOX" cas prices bread ${version} -`)
    expect(Number(changed.stdout)).toBeGreaterThan(Number(version))
    expect(await place.signalbox('cas', 'prices', 'bread', version, '3')).toMatchObject({
      status: 1,
      stderr: `signalbox: bread in prices does not have version ${version}\n`,
    })
    expect((await place.signalbox('get', 'prices', 'bread')).stdout).toBe('[1,2]\n')
  })
})

/** For each shell, a script that prints the words that its completion function offers for the words of a line. */
const SHELLS: Readonly<Record<string, (words: readonly string[]) => string>> = {
  bash: words => `
    source ./completion; COMP_WORDS=(${words.join(' ')}); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1))
    _signalbox; echo "\${COMPREPLY[@]}"`,
  fish: words => `source ./completion; complete -C '${words.join(' ')}'`,
  // Calls the function directly, because zsh completes only in a terminal.
  zsh: words => `
    autoload -Uz compinit; compinit -u -D; source ./completion
    _describe() { print -l -- \${(P)2} | cut -d : -f 1 }
    words=(${words.join(' ')}); CURRENT=$#words; _signalbox`,
}

test.each(Object.entries(SHELLS))('completion of %s knows commands and options', async (shell, script) => {
  await using place = new CommandPlace()
  const { stdout } = await place.signalbox('completion', shell)
  writeFileSync(join(place.folder, 'completion'), stdout)
  for (const [line, words] of [
    ['signalbox re', ['release', 'resume', 'revoke']],
    ['signalbox run --sk', ['--skip-if-busy']],
    ['signalbox chaos --peer', ['--peer']],
    ['signalbox trains --kil', ['--kill']],
    ['signalbox mutex --e', ['--engine']],
  ] as const) {
    const end = await place.program(shell, '-c', script(line.split(' '))).ended
    expect(end).toMatchObject({ status: 0, stderr: '' })
    expect(end.stdout.split(/\s+/), line).toEqual(expect.arrayContaining([...words]))
  }
  if (shell === 'bash') {
    const end = await place.program(shell, '-c', script('signalbox run --lock a -- mkfif'.split(' '))).ended
    expect(end.stdout.split(/\s+/)).toContain('mkfifo')
  }
})

test('completion knows no other shell', async () => {
  await using place = new CommandPlace()
  expect(await place.signalbox('completion', 'csh')).toMatchObject({ status: 2, stdout: '' })
})

test('gives up a frozen server in bounded time, with a status of its own', async () => {
  await using here = await RedisPlace.start({ config: ['requirepass secret'] })
  await using place = new CommandPlace(here.server.url.replace('//', '//:secret@'))
  here.server.pause()
  const ends = await Promise.all([
    place.signalbox('run', '--lock', 'a', '--', 'touch', 'ran'),
    place.signalbox('ls'),
    place.signalbox('get', 'store', 'key'),
  ])
  for (const { status, stdout, stderr } of ends) {
    expect({ status, stdout }).toEqual({ status: 69, stdout: '' })
    expect(stderr).toMatch(/^signalbox: .*can't reach.*\n$/)
    expect(stderr).not.toContain('secret')
  }
})
