import { contractSuite } from './suite.js'
import { postgres } from './postgres-fixture.js'

contractSuite(postgres)
