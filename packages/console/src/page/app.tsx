import { render, type JSX } from 'preact'
import { useEffect, useMemo, useState } from 'preact/hooks'
import { printable } from 'signalbox/reports'
import { Brand, SkipLink } from '../page-kit/browser/parts.js'
import { Old, Status } from '../page-kit/browser/freshness.js'
import { Connection } from './connection.js'
import { SharedContext, type Proposal } from './context.js'
import { Dialog } from './dialog.js'
import { DoctorView } from './doctor-view.js'
import { KeyPage } from './key-view.js'
import { LimitsView } from './limits-view.js'
import { LocksView } from './locks-view.js'
import { overviewOf, type Model } from './model.js'
import { hashOf, routeOf, type Route } from './route.js'
import { SessionPage, SessionsView } from './sessions-view.js'
import { ValueView } from './value-view.js'
import { ValuesView } from './values-view.js'
import { WaitsView } from './waits-view.js'

/** Interval at which the page updates durations, in milliseconds. */
const TICK = 1000
/** Time for which the page shows a note about a completed action, in milliseconds. */
const NOTE_TTL = 8000

const NO_KEYS: Model['keys'] = new Map()

/** Shows the page in an element. */
export function showApp(element: HTMLElement): void {
  let changed = (): void => undefined
  const connection = new Connection(() => changed())
  render(<App connection={connection} follow={listener => (changed = listener)} />, element)
}

interface Properties {
  readonly connection: Connection
  /** Registers a listener for changes of the connection. */
  readonly follow: (listener: () => void) => void
}

function App({ connection, follow }: Properties): JSX.Element {
  const [, setTurn] = useState(0)
  const [route, setRoute] = useState(routeOf(location.hash))
  const [proposal, setProposal] = useState<Proposal>()
  const [note, setNote] = useState('')
  useEffect(() => {
    const redraw = (): void => setTurn(turn => turn + 1)
    follow(redraw)
    const navigate = (): void => setRoute(routeOf(location.hash))
    addEventListener('hashchange', navigate)
    const tick = setInterval(redraw, TICK)
    return () => {
      removeEventListener('hashchange', navigate)
      clearInterval(tick)
    }
  }, [])
  useEffect(() => {
    if (note === '') return undefined
    const timer = setTimeout(() => setNote(''), NOTE_TTL)
    return () => clearTimeout(timer)
  }, [note])
  const { model } = connection
  const keys = model?.keys ?? NO_KEYS
  const overview = useMemo(() => overviewOf(keys), [keys])
  const freshness = connection.freshness()
  useEffect(() => {
    document.title = `${titleOf(route)} · Signalbox`
  }, [route])
  const close = (done?: string): void => {
    setProposal(undefined)
    if (done !== undefined) setNote(done)
  }
  return (
    <div class="page">
      <SkipLink />
      <header>
        <Brand />
        <p class="engine">{model?.engine}</p>
        <Status state={freshness.state}>
          {model?.readOnly === true && <span class="mode">read-only</span>}
        </Status>
        <nav aria-label="Views">
          <ul>
            {viewsOf(model).map(({ view, name, number }) => (
              <li key={view}>
                <a href={`#/${view}`} aria-current={sectionOf(route) === view ? 'page' : undefined}>
                  {name}
                  {number !== undefined && number > 0 && (
                    <span class="number">{number.toLocaleString('en')}</span>
                  )}
                </a>
              </li>
            ))}
          </ul>
        </nav>
      </header>
      <main id="main">
        <p class="note" role="status">
          {note}
        </p>
        {freshness.state === 'old' && <Old freshness={freshness} now={connection.now()} />}
        {freshness.state === 'locked' ? (
          <Locked />
        ) : model ? (
          <SharedContext.Provider
            value={{ connection, model, overview, now: connection.now(), propose: setProposal }}
          >
            <View route={route} />
          </SharedContext.Provider>
        ) : (
          freshness.state === 'connecting' && <p class="empty">Loading …</p>
        )}
      </main>
      {proposal && model && (
        <Dialog proposal={proposal} losses={proposal.losses({ model, overview })} close={close} />
      )}
    </div>
  )

  function viewsOf(known: Model | undefined): { view: Route['view']; name: string; number?: number }[] {
    return [
      { view: 'locks', name: 'Locks', number: keys.size },
      { view: 'waits', name: 'Waits', number: overview.waiters },
      { view: 'sessions', name: 'Sessions', number: overview.sessions.size },
      { view: 'limits', name: 'Limits', number: known?.limiters.length ?? 0 },
      { view: 'values', name: 'Values' },
      ...(known?.hasDoctor === true ? [{ view: 'doctor' as const, name: 'Doctor' }] : []),
    ]
  }
}

function View({ route }: { readonly route: Route }): JSX.Element {
  switch (route.view) {
    case 'locks':
      return <LocksView search={route.search} />
    case 'key':
      return <KeyPage key={route.key} name={route.key} />
    case 'waits':
      return <WaitsView />
    case 'limits':
      return <LimitsView />
    case 'values':
      return <ValuesView key={hashOf(route)} {...route} />
    case 'value':
      return <ValueView key={hashOf(route)} store={route.store} name={route.key} />
    case 'sessions':
      return <SessionsView />
    case 'session':
      return <SessionPage key={route.session} session={route.session} />
    case 'doctor':
      return <DoctorView />
  }
}

function Locked(): JSX.Element {
  return (
    <>
      <h1 tabIndex={-1}>You are not signed in</h1>
      <p class="empty">
        Open the address that <code>signalbox console</code> printed, with the part after the #. If another
        application serves this page, sign in there and reload.
      </p>
    </>
  )
}

function titleOf(route: Route): string {
  switch (route.view) {
    case 'key':
    case 'value':
      return printable(route.key)
    case 'session':
      return `Session ${printable(route.session)}`
    default:
      return `${route.view[0]!.toUpperCase()}${route.view.slice(1)}`
  }
}

/** The view of the menu that a route belongs to. */
function sectionOf({ view }: Route): Route['view'] {
  if (view === 'key') return 'locks'
  if (view === 'value') return 'values'
  return view === 'session' ? 'sessions' : view
}
