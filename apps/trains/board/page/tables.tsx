import type { JSX } from 'preact'
import { printable } from 'signalbox/reports'
import type { BusyPlace, Wait, WorkerState } from '../frames.js'
import { named } from './text.js'

export function Waits({ waits }: { readonly waits: readonly Wait[] }): JSX.Element {
  return (
    <section class="waits-list">
      <h2>Waits for locks, newest first</h2>
      <ol>
        {waits.map(({ waiter, holder, station }) => (
          <li key={`${waiter.train ?? waiter.who} ${station}`}>
            <span class="name">{printable(station)}</span>
            <span class="place">
              {named(waiter)} waits for {named(holder)}
            </span>
            <span class="number">{Math.round(waiter.age)} ms</span>
          </li>
        ))}
      </ol>
      {waits.length === 0 && <p class="hint">No waits yet</p>}
    </section>
  )
}

interface WorkersProperties {
  readonly workers: readonly WorkerState[]
  readonly events: readonly string[]
}

export function Workers({ workers, events }: WorkersProperties): JSX.Element {
  return (
    <section class="workers">
      <h2>Workers</h2>
      <Table head={['Worker', 'Messages', 'Per second', 'Killed', 'Replaced']}>
        {workers.map(({ worker, isReady, messages, perSecond, kills, replaced }) => (
          <tr key={worker} class={isReady ? '' : 'restarting'}>
            <td>{isReady ? worker : `${worker} restarting`}</td>
            <Numbers values={[messages, perSecond, kills, replaced]} />
          </tr>
        ))}
      </Table>
      <ol class="events">
        {events.map((event, index) => (
          <li key={index}>{event}</li>
        ))}
      </ol>
    </section>
  )
}

export function Busiest({ places }: { readonly places: readonly BusyPlace[] }): JSX.Element {
  return (
    <section class="busiest">
      <h2>Busiest locations</h2>
      <Table head={['Location', 'Created', 'Arrived', 'Departed', 'Deleted']}>
        {places.map(({ id, name, created, arrived, departed, deleted }) => (
          <tr key={id}>
            <td>
              {printable(name)} <span class="hint">{printable(id)}</span>
            </td>
            <Numbers values={[created, arrived, departed, deleted]} />
          </tr>
        ))}
      </Table>
    </section>
  )
}

interface TableProperties {
  readonly head: readonly string[]
  readonly children: JSX.Element[]
}

function Table({ head, children }: TableProperties): JSX.Element {
  return (
    <table>
      <thead>
        <tr>
          {head.map(name => (
            <th key={name} scope="col">
              {name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>{children}</tbody>
    </table>
  )
}

function Numbers({ values }: { readonly values: readonly number[] }): JSX.Element {
  return (
    <>
      {values.map((value, index) => (
        <td key={index} class="number">
          {Math.round(value).toLocaleString('en')}
        </td>
      ))}
    </>
  )
}
