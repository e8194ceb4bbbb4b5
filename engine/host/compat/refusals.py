"""What goes wrong in a drop-in API is what goes wrong in the native one, told in another form."""

from collections.abc import Callable
from functools import partial
from typing import Any

from litestar import Request, Response

from engine.host.compat.answering import FailedError
from engine.host.compat.dialect import Dialect

AnyRequest = Request[Any, Any, Any]
ErrorHandler = Callable[[AnyRequest, Any], Response[Any]]
ErrorHandlers = dict[int | type[Exception], ErrorHandler]

_DIALECT = "dialect"  # in a request's state
_NOT_IMPLEMENTED = 501


def note_dialect(request: AnyRequest, dialect: Dialect) -> None:
    """Remember which dialect a request's body is of."""
    request.state[_DIALECT] = dialect


def translated(handlers: ErrorHandlers, default: Dialect) -> ErrorHandlers:
    """Handlers whose Problems are told in the dialect of the request, or in `default`."""
    native: ErrorHandlers = {**handlers, FailedError: _fail}
    return {kind: partial(_tell, handler, default) for kind, handler in native.items()}


def _tell(
    handler: ErrorHandler, default: Dialect, request: AnyRequest, error: Exception
) -> Response[Any]:
    response = handler(request, error)
    problem, status = response.content, response.status_code or 500
    if problem.code == "model_unsupported":
        status = _NOT_IMPLEMENTED
    dialect: Dialect = request.state.get(_DIALECT, default)
    content = dialect.refusal(status, problem)
    return Response(content, status_code=status, headers=response.headers)


def _fail(_: AnyRequest, error: FailedError) -> Response[Any]:
    return Response(error.problem, status_code=error.status, headers=error.headers)
