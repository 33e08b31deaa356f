/**
 * The server parts that the pages of Signalbox share: a local server, the headers and files of a page, and events.
 * Internal: not covered by semantic versioning.
 *
 * @module
 */
export { EVENT_HEADERS, MAX_BACKLOG, eventBytes } from './events.js'
export { GuardedServer, type Answer, type RequestRefusal } from './guarded-server.js'
export { PAGE_FILES, PAGE_HEADERS } from './page-headers.js'
