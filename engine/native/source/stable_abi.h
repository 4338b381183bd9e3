/* What this module uses of Python's stable ABI (3.11 and later), so that no header files of Python are needed to build it.
 * Source: https://docs.python.org/3/c-api/stable.html; each name and layout there is promised for all later versions of Python 3. */
#pragma once
#include <stddef.h>
#include <stdint.h>

typedef ptrdiff_t Py_ssize_t;
typedef struct _object PyObject;
typedef struct _thread_state PyThreadState;
typedef PyObject *(*PyCFunctionFast)(PyObject *self, PyObject *const *arguments, Py_ssize_t count);

typedef struct {
  void *buf;
  PyObject *obj;
  Py_ssize_t len, itemsize;
  int readonly, ndim;
  char *format;
  Py_ssize_t *shape, *strides, *suboffsets;
  void *internal;
} Py_buffer;

typedef struct {
  const char *ml_name;
  PyCFunctionFast ml_meth;
  int ml_flags;
  const char *ml_doc;
} PyMethodDef;

typedef struct {
  struct {
    Py_ssize_t references;
    void *type;
    PyObject *(*initialize)(void);
    Py_ssize_t index;
    PyObject *copy;
  } m_base;
  const char *m_name, *m_doc;
  Py_ssize_t m_size;
  PyMethodDef *m_methods;
  void *m_slots, *m_traverse, *m_clear, *m_free;
} PyModuleDef;

enum { METH_FASTCALL = 0x80, ABI_VERSION = 3, PyBUF_WRITABLE = 0x1, PyBUF_C_CONTIGUOUS = 0x38 };

#ifdef _WIN32
#define IMPORTED __declspec(dllimport)
#define EXPORTED __declspec(dllexport)
#else
#define IMPORTED extern
#define EXPORTED __attribute__((visibility("default")))
#endif

IMPORTED PyObject *PyExc_BufferError, *PyExc_IndexError, *PyExc_MemoryError, *PyExc_TypeError, *PyExc_ValueError;
IMPORTED PyObject _Py_NoneStruct;
IMPORTED PyObject *PyModule_Create2(PyModuleDef *module, int version);
IMPORTED int PyModule_AddObjectRef(PyObject *module, const char *name, PyObject *value);
IMPORTED PyObject *PyCFunction_NewEx(PyMethodDef *method, PyObject *self, PyObject *module);
IMPORTED PyObject *PyCapsule_New(void *pointer, const char *name, void *destructor);
IMPORTED void *PyCapsule_GetPointer(PyObject *capsule, const char *name);
IMPORTED long long PyLong_AsLongLong(PyObject *number);
IMPORTED unsigned long long PyLong_AsUnsignedLongLongMask(PyObject *number);
IMPORTED PyObject *PyLong_FromLongLong(long long number);
IMPORTED double PyFloat_AsDouble(PyObject *number);
IMPORTED PyObject *PyTuple_New(Py_ssize_t size);
IMPORTED int PyTuple_SetItem(PyObject *tuple, Py_ssize_t place, PyObject *item);
IMPORTED PyObject *PyErr_Occurred(void);
IMPORTED PyObject *PyErr_Format(PyObject *kind, const char *format, ...);
IMPORTED int PyObject_GetBuffer(PyObject *owner, Py_buffer *view, int flags);
IMPORTED void PyBuffer_Release(Py_buffer *view);
IMPORTED PyThreadState *PyEval_SaveThread(void);
IMPORTED void PyEval_RestoreThread(PyThreadState *state);
IMPORTED void Py_IncRef(PyObject *object);
IMPORTED void Py_DecRef(PyObject *object);
