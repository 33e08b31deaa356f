import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openTimetable, type TimetableChoice } from '../../../apps/trains/gtfs/gtfs-source.js'
import type { Finding } from '../../../apps/trains/input/findings.js'
import type { TimedMessage } from '../../../apps/trains/input/source.js'
import { zipArchive } from '../../support/trains/zip-archive.js'

const fixtures = fileURLToPath(new URL('../../fixtures/gtfs/', import.meta.url))
const caltrain = fileURLToPath(new URL('../../../apps/trains/data/caltrain-gtfs', import.meta.url))

let temporary: string
beforeEach(async () => {
  temporary = await mkdtemp(join(tmpdir(), 'trains-'))
})
afterEach(async () => {
  await rm(temporary, { recursive: true })
})

async function read(path: string, choice: Partial<TimetableChoice> = {}) {
  const rejections: Finding[] = []
  const repairs: Finding[] = []
  const source = await openTimetable(
    { path, date: undefined, locations: 'stop', days: 1, ...choice },
    { rejected: finding => rejections.push(finding), repaired: finding => repairs.push(finding) },
  )
  const messages: TimedMessage[] = []
  for await (const batch of source.batches()) messages.push(...batch)
  return { source, messages, rejections: told(rejections), repairs: told(repairs) }
}

function told(findings: readonly Finding[]): readonly string[] {
  return findings.map(({ file, line, reason }) => `${file} ${line}: ${reason}`).toSorted()
}

const fixture = (name: string, choice: Partial<TimetableChoice> = {}) => read(join(fixtures, name), choice)

/** Returns a message on one line: `08:05 t1#1 move B`. */
function line({ message, time = NaN }: TimedMessage): string {
  const { type, train } = message
  const where = 'location' in message ? message.location : 'to' in message ? message.to : ''
  const clock = `${Math.floor(time / 3600)}:${String((time / 60) % 60).padStart(2, '0')}`
  return `${clock} ${train} ${type} ${String(where)}`.trimEnd()
}

const plain = [
  '8:00 t1#1 create A',
  '8:05 t2#1 create C',
  '8:10 t1#1 move B',
  '8:20 t1#1 move C',
  '8:20 t1#1 delete',
  '8:20 t2#1 move A',
  '8:25 t2#1 delete',
]

describe('a feed becomes messages', () => {
  test('a trip is created at its first stop, moves to each later one and is deleted after the last', async () => {
    const { messages, rejections, source } = await fixture('plain')
    expect(messages.map(line)).toEqual(plain)
    expect(rejections).toEqual([])
    expect(source.total).toBe(plain.length)
    expect(source.locationNames.get('B')).toBe('Birch')
  })

  test('byte order marks, CRLF, quotes, blanks, empty lines and any order change nothing', async () => {
    const { messages, rejections, source } = await fixture('untidy')
    expect(messages.map(line)).toEqual(plain)
    expect(rejections).toEqual([])
    expect(source.locationNames.get('A')).toBe('Alder, east "side"')
  })

  test('a zip archive reads like the folder', async () => {
    const path = join(temporary, 'feed.zip')
    const folder = join(fixtures, 'untidy')
    const files = new Map<string, Buffer>()
    for (const name of await readdir(folder)) files.set(name, await readFile(join(folder, name)))
    await writeFile(path, zipArchive(files))
    const { messages } = await read(path)
    expect(messages.map(line)).toEqual(plain)
  })

  test('stops without times are spread evenly between those around them', async () => {
    const { messages } = await fixture('blank-times')
    expect(messages.map(line)).toEqual([
      '10:00 t1#1 create A',
      '10:12 t1#1 move B',
      '10:22 t1#1 move C',
      '10:32 t1#1 move D',
      '10:40 t1#1 move E',
      '10:40 t1#1 delete',
    ])
  })

  test('trips past midnight overlap the following days', async () => {
    const { messages } = await fixture('past-midnight', { days: 3 })
    expect(messages.map(line)).toEqual([
      '0:05 early#1 create B',
      '0:30 early#1 move A',
      '0:30 early#1 delete',
      '23:50 late#1 create A',
      '24:05 early#2 create B',
      '24:10 late#1 move B',
      '24:30 early#2 move A',
      '24:30 early#2 delete',
      '47:50 late#2 create A',
      '48:05 early#3 create B',
      '48:10 late#2 move B',
      '48:30 early#3 move A',
      '48:30 early#3 delete',
      '49:00 late#1 move A',
      '49:00 late#1 delete',
      '71:50 late#3 create A',
      '72:10 late#3 move B',
      '73:00 late#2 move A',
      '73:00 late#2 delete',
      '97:00 late#3 move A',
      '97:00 late#3 delete',
    ])
  })

  test('with stations as locations, stops at any level below a station belong to it', async () => {
    const { messages } = await fixture('stations', { locations: 'station' })
    expect(messages.map(line)).toEqual([
      '6:00 t1#1 create A',
      '6:10 t1#1 move B',
      '6:20 t1#1 move A',
      '6:20 t1#1 delete',
    ])
  })
})

describe('the trips of a date', () => {
  test('by calendar.txt alone: the right weekday, and only between its first and last day', async () => {
    expect((await fixture('plain', { date: '20260102' })).messages).toHaveLength(7)
    for (const date of ['20260103', '20251231', '20270101']) {
      await expect(fixture('plain', { date })).rejects.toThrow(`runs on ${date}`)
    }
  })

  test('exceptions add and remove services: Memorial Day runs as a Sunday', async () => {
    const sunday = await read(caltrain, { date: '20160529' })
    const holiday = await read(caltrain, { date: '20160530' })
    const monday = await read(caltrain, { date: '20160606' })
    expect(holiday.messages).toEqual(sunday.messages)
    expect(monday.messages.length).toBeGreaterThan(sunday.messages.length)
  })

  test('needs a calendar and a valid date, and can be repeated', async () => {
    await expect(fixture('blank-times', { date: '20260101' })).rejects.toThrow(
      'has neither calendar.txt nor calendar_dates.txt',
    )
    await expect(fixture('plain', { date: '20260230' })).rejects.toThrow('invalid date 20260230')
    expect((await fixture('plain', { date: '20260102', days: 2 })).messages).toHaveLength(14)
  })
})

describe('a feed with faults', () => {
  test('a fault in an unused column does no harm', async () => {
    const { messages, source, repairs } = await fixture('spoiled')
    const t1 = messages.map(line).filter(text => text.includes('t1#1'))
    expect(t1).toEqual([
      '8:00 t1#1 create A',
      '8:10 t1#1 move B',
      '8:20 t1#1 move C',
      '8:30 t1#1 move D',
      '8:40 t1#1 move E',
      '8:50 t1#1 move F',
      '9:00 t1#1 move G',
      '9:00 t1#1 delete',
    ])
    expect(['A', 'B', 'C', 'D', 'E', 'F', 'G'].map(id => source.locationNames.get(id))).toEqual([
      ...['Alder', 'Birch, west', 'Cedar', 'Dogwood', 'Elm', 'Fir', undefined],
    ])
    expect(repairs.filter(text => !text.includes('estimated'))).toEqual(
      [
        ...[2, 3, 4, 5, 8].map(line => `stops.txt ${line}: a stray quote was read as text`),
        'stops.txt 6: the line is not valid UTF-8; invalid bytes became U+FFFD',
        'stops.txt 9: a stray quote was read as text',
        'stops.txt 10: a stray quote was read as text',
        'trips.txt 2: a stray quote was read as text',
        ...[2, 3, 4].map(line => `stop_times.txt ${line}: a stray quote was read as text`),
        'stop_times.txt 23: the line has 6 fields, but the first line names 7 columns; the missing ones are empty',
        'stop_times.txt 8: trip "t1": stop_id "G" is not in stops.txt; it is tracked by its ID',
      ].toSorted(),
    )
  })
})

describe('an invalid feed', () => {
  test('bad lines are rejected with their numbers and reasons, and the rest continues', async () => {
    const { messages, rejections, repairs } = await fixture('broken')
    expect(messages.map(line)).toEqual([
      '6:00 t1#1 create A',
      '6:05 t1#1 move Z',
      '6:10 t1#1 move B',
      '6:30 t1#1 move C',
      '6:50 t1#1 move B',
      '6:50 t1#1 delete',
      '6:59 t2#1 create A',
      '7:00 t2#1 move B',
      '7:00 t2#1 delete',
    ])
    expect(rejections).toEqual(
      [
        'stops.txt 3: stop_id must not be empty',
        'trips.txt 3: trip_id "t1" repeats an earlier line',
        'trips.txt 4: the line has 2 fields, but the first line names 3 columns',
        'stop_times.txt 3: trip "t9": it is not in trips.txt',
        'stop_times.txt 5: trip "t1": arrival_time must be a time such as 07:05:00, got "6 o\'clock"',
        'stop_times.txt 7: trip "t1" repeats stop_sequence 4 of an earlier line',
        'stop_times.txt 8: trip "t1": arrival_time must be a time such as 07:05:00, got "\\"06:12:00"',
        'stop_times.txt 9: trip "t1": departure_time 06:14:00 is before arrival_time 06:15:00',
        'stop_times.txt 10: trip "t1" arrives at 06:09:00, but departs from an earlier stop at 06:10:00',
        'stop_times.txt 11: trip "t1": stop_sequence must be an integer, got "-8"',
        'stop_times.txt 12: the line has 4 fields, but the first line names 5 columns',
      ].toSorted(),
    )
    expect(repairs).toEqual(
      [
        'stops.txt 5: stop_id "A" repeats an earlier line; the earlier one is used',
        'stop_times.txt 4: trip "t1": stop_id "Z" is not in stops.txt; it is tracked by its ID',
        'stop_times.txt 8: a stray quote was read as text',
        'stop_times.txt 14: trip "t1" ends without a time; 06:50:00 is estimated',
        'stop_times.txt 15: trip "t2" begins without a time; 06:59:00 is estimated',
      ].toSorted(),
    )
  })

  test('the error names a missing feed, file or column, an empty file and an invalid header', async () => {
    await expect(fixture('nowhere')).rejects.toThrow(/can't read .*nowhere/)
    const write = (name: string, text: string) => writeFile(join(temporary, name), text)
    await expect(read(temporary)).rejects.toThrow('has no stops.txt')
    await write('stops.txt', 'stop_id\nA\n')
    await write('trips.txt', 'trip_id\nt1\n')
    await expect(read(temporary)).rejects.toThrow('trips.txt has no column service_id')
    await write('trips.txt', '')
    await expect(read(temporary)).rejects.toThrow('trips.txt is empty')
    await write('trips.txt', 'trip_id,"service_id\nt1,s\n')
    await expect(read(temporary)).rejects.toThrow('trips.txt has no column service_id')
    await write('trips.txt', `${'x'.repeat(70_000)}\n`)
    await expect(read(temporary)).rejects.toThrow('trips.txt, line 1: the line has 70000 characters')
    await write('trips.txt', 'trip_id,service_id,trip_id\nt1,s,t1\n')
    await expect(read(temporary)).rejects.toThrow('trips.txt has duplicate columns trip_id')
    await write('trips.txt', 'trip_id,service_id\nt1,s\n')
    await write('stop_times.txt', 'trip_id,stop_id\nt1,A\n')
    await expect(read(temporary)).rejects.toThrow(
      'stop_times.txt has no column arrival_time, departure_time, stop_sequence',
    )
    await write('stop_times.txt', 'trip_id,stop_id,arrival_time,departure_time,stop_sequence\n')
    await expect(read(temporary)).rejects.toThrow('has no usable trip')
  })

  test('the error says that an archive is damaged, is not one, or has its files in a folder', async () => {
    const path = join(temporary, 'feed.zip')
    await writeFile(path, 'not a zip archive')
    await expect(read(path)).rejects.toThrow('neither a folder nor a readable zip archive')
    await writeFile(path, zipArchive(new Map([['feed/stops.txt', Buffer.from('stop_id\nA\n')]])))
    await expect(read(path)).rejects.toThrow(
      'has no stops.txt; feed/stops.txt must be at the top level of the archive',
    )
    const archive = zipArchive(new Map([['stops.txt', Buffer.from('stop_id\nA\nB\nC\nD\n'.repeat(20))]]))
    archive.fill(0xff, 40, 50)
    await writeFile(path, archive)
    await expect(read(path)).rejects.toThrow("can't read stops.txt")
  })
})
